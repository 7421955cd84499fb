//! The arguments of `redflow kb`.

use super::shared::{DATA_HELP, PrivateOption, SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::{Args, Subcommand, ValueEnum};
use redflow_contract::archive::SearchMode;
use redflow_contract::knowledge_api::{EmbedderChoice, MAX_RETENTION_DAYS};
use redflow_contract::node::Embeddings;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  redflow kb add manuals ./manuals           add all documents of a folder, or only what has changed
  redflow kb add manuals https://example.org/manual.pdf
  redflow kb search manuals \"how do I reset the pump?\"
  redflow kb list                            the knowledge bases
  redflow kb list manuals                    the documents of one
  redflow kb remove manuals old/pump.md
  redflow kb add manuals ./manuals --url http://127.0.0.1:1881   add them to a sidecar

A `knowledge-base-tool` with the collection `manuals` lets an agent search there.
With REDFLOW_URL set, the commands use that sidecar, unless --data is given.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct KbOptions {
    #[command(subcommand)]
    pub(crate) command: KbCommand,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
}

impl KbOptions {
    /// The sidecar options, which can be anywhere on the command line.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }

    /// The private hosts that documents may be fetched from.
    pub(crate) fn allow_private(&self) -> Vec<String> {
        match &self.command {
            KbCommand::Add(options) => options.private.allow_private.clone(),
            _ => Vec::new(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KbCommand {
    /// Add documents: files, folders or addresses. What has not changed is left alone
    Add(AddOptions),
    /// Search for passages, and show why each was found
    Search(SearchOptions),
    /// List the knowledge bases, or the documents of one
    List {
        /// The knowledge base
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the passages of a document
    Show {
        /// The knowledge base
        #[arg(value_name = "NAME")]
        name: String,
        /// The document, as `redflow kb list NAME` shows it
        #[arg(value_name = "DOCUMENT")]
        document: String,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Remove a document, or a whole knowledge base. Nothing of it stays in the file
    Remove {
        /// The knowledge base
        #[arg(value_name = "NAME")]
        name: String,
        /// The document. Without one, the whole knowledge base is removed
        #[arg(value_name = "DOCUMENT")]
        document: Option<String>,
    },
    /// Make all vectors again, such as with another embedder
    Reindex {
        /// The knowledge base
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        embedder: EmbedderOptions,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// The knowledge base: letters, digits, `-`, `_` and `.`. It is made if there is none
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Files, folders or addresses of documents: md, txt, html, pdf, csv, tsv, json, jsonl
    #[arg(value_name = "PATH|URL", required = true)]
    pub(crate) paths: Vec<String>,
    #[command(flatten)]
    pub(crate) private: PrivateOption,
    /// A tag of the documents; can be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Remove the documents after so many days. Adding them again begins the days again. Default: never
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RETENTION_DAYS)))]
    pub(crate) retention_days: Option<u32>,
    #[command(flatten)]
    pub(crate) embedder: EmbedderOptions,
    /// Only say what would be added, and what it would cost
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object per document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which embedder makes the vectors. A knowledge base keeps what it was made with.
#[derive(Debug, Args)]
pub(crate) struct EmbedderOptions {
    /// Who makes the vectors. Default: as the knowledge base was made; for a new one `openai` if there is a key in
    /// OPENAI_API_KEY, else `minilm` if it is installed, else `hash`
    #[arg(long, value_name = "E", value_enum)]
    pub(crate) embeddings: Option<EmbeddingsName>,
    /// The model. Default: text-embedding-3-small
    #[arg(long, value_name = "MODEL")]
    pub(crate) embedding_model: Option<String>,
    /// The length of the vectors, if the model can shorten them. Default: 512 for text-embedding-3-*
    #[arg(long, value_name = "N")]
    pub(crate) dimensions: Option<u32>,
    /// The address of a compatible server
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The deployment, for Azure
    #[arg(long, value_name = "NAME")]
    pub(crate) deployment: Option<String>,
    /// The version of the API, for Azure
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
}

impl EmbedderOptions {
    /// What the options choose.
    pub(crate) fn choice(&self) -> EmbedderChoice {
        EmbedderChoice {
            embeddings: self.embeddings.map(Into::into),
            embedding_model: self.embedding_model.clone(),
            dimensions: self.dimensions,
            base_url: self.base_url.clone(),
            deployment: self.deployment.clone(),
            api_version: self.api_version.clone(),
        }
    }
}

/// Who makes vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmbeddingsName {
    /// The best that there is
    Auto,
    /// OpenAI, or a compatible server by --base-url
    Openai,
    /// Azure OpenAI
    Azure,
    /// Ollama
    Ollama,
    /// The model all-MiniLM-L6-v2 on this machine
    Minilm,
    /// Without a model: finds words, not meaning
    Hash,
}

impl From<EmbeddingsName> for Embeddings {
    fn from(name: EmbeddingsName) -> Self {
        match name {
            EmbeddingsName::Auto => Self::Auto,
            EmbeddingsName::Openai => Self::Openai,
            EmbeddingsName::Azure => Self::Azure,
            EmbeddingsName::Ollama => Self::Ollama,
            EmbeddingsName::Minilm => Self::Minilm,
            EmbeddingsName::Hash => Self::Hash,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// The knowledge base
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What to search for
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,
    /// How texts are compared. Default: by meaning, or by both if the embedder finds words only
    #[arg(long, value_name = "M", value_enum)]
    pub(crate) mode: Option<ModeName>,
    /// The most passages
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// The least score, from 0 to 1. Default: 0.7 by meaning, else 0
    #[arg(long, value_name = "SCORE")]
    pub(crate) min_score: Option<f32>,
    /// Only passages with this tag; can be repeated, and one of them is enough
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Print one JSON object per passage
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a search compares texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// By meaning
    Semantic,
    /// By words
    Lexical,
    /// By both
    Hybrid,
}

impl From<ModeName> for SearchMode {
    fn from(mode: ModeName) -> Self {
        match mode {
            ModeName::Semantic => Self::Semantic,
            ModeName::Lexical => Self::Lexical,
            ModeName::Hybrid => Self::Hybrid,
        }
    }
}
