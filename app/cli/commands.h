// SPDX-License-Identifier: MIT
// The subcommands of `snapkv`. Each function adds one to the command line and returns it with the
// function that runs it.
#pragma once

#include <memory>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

struct ServeSettings;  // serve/options.h

/// Reads a prompt, compresses its cache and writes the answer: generate/command.cpp
Command add_generate_command(CLI::App& root, const CommonSettings& common);
/// Shows what a model is and how much memory a prompt needs: info/command.cpp
Command add_info_command(CLI::App& root, const CommonSettings& common);
/// Turn a text into tokens, and tokens into text: tokenize/
Command add_tokenize_command(CLI::App& root, const CommonSettings& common);
Command add_detokenize_command(CLI::App& root, const CommonSettings& common);
/// Writes a model as one GGUF file: convert/command.cpp
Command add_convert_command(CLI::App& root, const CommonSettings& common);
/// Finds a fact in a long text, with a full cache and with SnapKV: demo/command.cpp
Command add_demo_command(CLI::App& root, const CommonSettings& common);
/// Shows step by step how SnapKV chooses the rows it keeps: explain/command.cpp
Command add_explain_command(CLI::App& root, const CommonSettings& common);
/// Measures tokens per second and memory, as llama-bench does: bench/command.cpp
Command add_bench_command(CLI::App& root, const CommonSettings& common);
/// Draws a prompt's cache and attention as a page of charts: inspect/command.cpp
Command add_inspect_command(CLI::App& root, const CommonSettings& common);
/// Lists the policies and their parameters: policies/command.cpp
Command add_policies_command(CLI::App& root, const CommonSettings& common);
/// Renders a conversation through a chat template: apply_template/command.cpp
Command add_apply_template_command(CLI::App& root);
/// A chat or an answer about documents, with a model by its name: run/command.cpp
Command add_run_command(CLI::App& root, const CommonSettings& common);
/// The models on this machine: models/command.cpp
Command add_models_command(CLI::App& root);
/// Fetches a model: pull/command.cpp
Command add_pull_command(CLI::App& root, const CommonSettings& common);
/// A conversation, turn by turn: chat/command.cpp
Command add_chat_command(CLI::App& root, const CommonSettings& common);
/// Serves OpenAI's and Anthropic's APIs: serve/command.cpp
/// `settings` are what its options fill.
Command add_serve_command(CLI::App& root, const CommonSettings& common,
                          std::shared_ptr<ServeSettings> settings);
/// Read a document once, and answer questions about it: document/
Command add_compress_command(CLI::App& root, const CommonSettings& common);
Command add_ask_command(CLI::App& root, const CommonSettings& common);
/// The documents that run has stored: document/documents_command.cpp
Command add_documents_command(CLI::App& root);
/// Measures the quality of many cache configurations on the same prompts: eval/command.cpp
Command add_eval_command(CLI::App& root, const CommonSettings& common);
/// Print completion scripts and the manual page: completion/command.cpp
Command add_completion_command(CLI::App& root);
Command add_manual_command(CLI::App& root);

}  // namespace snapkv::cli
