// SPDX-License-Identifier: MIT
// The subcommands of `snapkv`. Each function adds one to the command line and returns it with what
// runs it; main.cpp calls them.
#pragma once

#include "cli/common/settings.h"

namespace snapkv::cli {

/// Reads a prompt, compresses its cache and writes the answer: generate/command.cpp
Command add_generate_command(CLI::App& root, const CommonSettings& common);
/// What a model is and how much memory a prompt needs: info/command.cpp
Command add_info_command(CLI::App& root, const CommonSettings& common);
/// The tokens of a text, and the text of tokens: tokenize/
Command add_tokenize_command(CLI::App& root, const CommonSettings& common);
Command add_detokenize_command(CLI::App& root, const CommonSettings& common);
/// A model as one GGUF file: convert/command.cpp
Command add_convert_command(CLI::App& root, const CommonSettings& common);
/// A fact in a long text, full cache beside SnapKV: demo/command.cpp
Command add_demo_command(CLI::App& root, const CommonSettings& common);
/// How SnapKV chooses what is kept, step by step: explain/command.cpp
Command add_explain_command(CLI::App& root, const CommonSettings& common);
/// Tokens per second and memory, as llama-bench measures them: bench/command.cpp
Command add_bench_command(CLI::App& root, const CommonSettings& common);
/// A prompt's cache and attention as a page of charts: inspect/command.cpp
Command add_inspect_command(CLI::App& root, const CommonSettings& common);
/// The policies with their parameters: policies/command.cpp
Command add_policies_command(CLI::App& root, const CommonSettings& common);
/// A conversation through a chat template: apply_template/command.cpp
Command add_apply_template_command(CLI::App& root);
/// A chat or an answer about documents, with a model by its name: run/command.cpp
Command add_run_command(CLI::App& root, const CommonSettings& common);
/// The models on this machine: models/command.cpp
Command add_models_command(CLI::App& root);
/// A conversation, turn by turn: chat/command.cpp
Command add_chat_command(CLI::App& root, const CommonSettings& common);
/// A server with OpenAI's and Anthropic's APIs: serve/command.cpp
Command add_serve_command(CLI::App& root, const CommonSettings& common);
/// A document that is read once, and questions about it: document/
Command add_compress_command(CLI::App& root, const CommonSettings& common);
Command add_ask_command(CLI::App& root, const CommonSettings& common);
/// Quality of many cache configurations on the same prompts: eval/command.cpp
Command add_eval_command(CLI::App& root, const CommonSettings& common);

}  // namespace snapkv::cli
