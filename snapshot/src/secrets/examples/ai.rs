//! Model providers.

use super::{Example, HEX, LETTERS, MIXED, example, noise};

pub(super) fn all() -> Vec<Example> {
    vec![
        example(
            "anthropic-key",
            [format!("sk-{}-api03-{}AA", "ant", noise(MIXED, 93))],
            ["sk-ant-api03-your-key", "sk-ant-..."],
        ),
        example(
            "openai-key",
            [format!("sk-{}-{}", "proj", noise(MIXED, 120))],
            [
                "sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "sk-proj-...",
            ],
        ),
        example(
            "openrouter-key",
            [format!("sk-{}-v1-{}", "or", noise(HEX, 64))],
            ["sk-or-v1-..."],
        ),
        example(
            "sk-key",
            [
                format!("s{}-{}", "k", noise(MIXED, 48)),
                format!("s{}-{}", "k", noise(HEX, 32)),
            ],
            [
                format!("disk-{}", noise(MIXED, 48)),
                "sk-fading-circle-with-a-very-long-name-of-a-class".to_owned(),
                "sk-abcdefghijklmnopqrstuvwxyzabcdefgh".to_owned(),
            ],
        ),
        example(
            "hugging-face-token",
            [format!("h{}_{}", "f", noise(LETTERS, 34))],
            ["hf_hub_download", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        ),
        example("groq-key", [format!("gs{}_{}", "k", noise(MIXED, 52))], ["gsk_"]),
        example(
            "xai-key",
            [format!("xa{}-{}", "i", noise(MIXED, 80))],
            ["xai-org"],
        ),
        example(
            "replicate-token",
            [format!("r{}_{}", "8", noise(MIXED, 37))],
            ["r8_"],
        ),
        example(
            "perplexity-key",
            [format!("pp{}-{}", "lx", noise(MIXED, 48))],
            ["pplx-api"],
        ),
        example(
            "nvidia-key",
            [format!("nv{}-{}", "api", noise(MIXED, 64))],
            ["nvapi-"],
        ),
        example(
            "langsmith-key",
            [format!("lsv2_{}_{}_{}", "pt", noise(HEX, 32), noise(HEX, 10))],
            ["lsv2_pt_"],
        ),
        example(
            "tavily-key",
            [format!("tv{}-{}", "ly", noise(MIXED, 32))],
            ["tvly-"],
        ),
    ]
}
