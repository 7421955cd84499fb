//! `redflow explain`.

use crate::args::ExplainOptions;
use crate::exit::Exit;
use crate::terminal::{fail, print_text};
use crate::text::printable_line;
use redflow_contract::code::{self, ArchiveCode, DiagnosticCode, RunErrorCode, StoreCode, ToolCode};
use std::fmt::Write as _;

pub(crate) fn explain(options: &ExplainOptions) -> Exit {
    let Some(name) = &options.code else {
        return print_text(&list_codes());
    };
    if let Some(page) = code::page(&name.trim().to_uppercase().replace('-', "_")) {
        return print_text(page);
    }
    fail(&format!("there is no code `{}`; `redflow explain` lists them all", printable_line(name, 60)))
}

fn list_codes() -> String {
    let mut out = String::from("Diagnostics of a flow (redflow check):\n");
    for code in DiagnosticCode::ALL {
        let _ = writeln!(out, "  {:28} {:8} {}", code.as_str(), code.class().as_str(), code.summary());
    }
    out.push_str("\nErrors of a run (redflow run):\n");
    for code in RunErrorCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out.push_str("\nFailures of a tool call (the `code` of its result):\n");
    for code in ToolCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out.push_str("\nErrors about stored runs (redflow runs, redflow run --resume):\n");
    for code in StoreCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out.push_str("\nErrors about knowledge bases (redflow kb):\n");
    for code in ArchiveCode::ALL {
        let _ = writeln!(out, "  {:28} {}", code.as_str(), code.summary());
    }
    out
}
