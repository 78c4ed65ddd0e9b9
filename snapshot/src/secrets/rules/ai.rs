//! Model providers.

use super::super::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::token(
        "anthropic-key",
        "Anthropic key",
        &["sk-ant-"],
        r"sk-ant-[a-z]{2,8}[0-9]{2}-([A-Za-z0-9_-]{60,})",
    )
    .entropy(3.5),
    Rule::token(
        "openai-key",
        "OpenAI key",
        &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"],
        r"sk-(?:proj|svcacct|admin|None)-([A-Za-z0-9_-]{40,})",
    )
    .entropy(3.8),
    Rule::token(
        "openrouter-key",
        "OpenRouter key",
        &["sk-or-v1-"],
        r"sk-or-v1-([a-f0-9]{64})",
    ),
    // Many providers copied the oldest form of OpenAI's keys. Style sheets have words behind the prefix, not digits.
    Rule::token(
        "sk-key",
        "key in the form of OpenAI's",
        &["sk-"],
        r"sk-([A-Za-z0-9]{32,64})",
    )
    .entropy(3.3)
    .accept(digits),
    Rule::token(
        "hugging-face-token",
        "Hugging Face token",
        &["hf_", "api_org_"],
        r"(?:hf|api_org)_([A-Za-z]{34})",
    )
    .entropy(3.8),
    Rule::token("groq-key", "Groq key", &["gsk_"], r"gsk_([A-Za-z0-9]{48,60})").entropy(3.8),
    Rule::token("xai-key", "xAI key", &["xai-"], r"xai-([A-Za-z0-9]{70,90})").entropy(3.8),
    Rule::token(
        "replicate-token",
        "Replicate token",
        &["r8_"],
        r"r8_([A-Za-z0-9]{37})",
    )
    .entropy(3.5),
    Rule::token(
        "perplexity-key",
        "Perplexity key",
        &["pplx-"],
        r"pplx-([A-Za-z0-9]{48})",
    )
    .entropy(3.8),
    Rule::token(
        "nvidia-key",
        "NVIDIA key",
        &["nvapi-"],
        r"nvapi-([A-Za-z0-9_-]{60,80})",
    )
    .entropy(3.8),
    Rule::token(
        "langsmith-key",
        "LangSmith key",
        &["lsv2_pt_", "lsv2_sk_"],
        r"lsv2_(?:pt|sk)_([a-f0-9]{32}_[a-f0-9]{10})",
    ),
    Rule::token(
        "tavily-key",
        "Tavily key",
        &["tvly-"],
        r"tvly-([A-Za-z0-9-]{32,50})",
    )
    .entropy(3.5),
];

fn digits(candidate: &super::super::rule::Candidate<'_>) -> bool {
    let digits = candidate
        .secret
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count();
    digits >= 3 && !super::super::judge::stands_in(candidate.secret)
}
