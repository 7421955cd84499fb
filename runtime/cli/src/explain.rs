//! `redflow explain`.

use crate::Exit;
use crate::args::ExplainOptions;
use crate::terminal::{complain, data, printable_line};
use redflow_contract::code::{self, DiagnosticCode, RunErrorCode, StoreCode};
use std::fmt::Write as _;

pub(crate) fn explain(options: &ExplainOptions) -> Exit {
    let Some(asked) = &options.code else {
        return data(&list());
    };
    let name = asked.trim().to_uppercase().replace('-', "_");
    if let Some(page) = code::page(&name) {
        return data(page);
    }
    complain(&format!("there is no code `{}`; `redflow explain` lists them all", printable_line(asked, 60)));
    Exit::Unusable
}

fn list() -> String {
    let mut out = String::from("Diagnostics of a flow (redflow check):\n");
    for code in DiagnosticCode::ALL {
        let _ = writeln!(out, "  {:28} {:8} {}", code.as_str(), code.class().as_str(), code.summary());
    }
    out.push_str("\nErrors of a run (redflow run):\n");
    for code in RunErrorCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out.push_str("\nErrors about runs that are kept (redflow runs, redflow run --resume):\n");
    for code in StoreCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out
}
