// SPDX-License-Identifier: MIT
#include "chat/document.h"

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/chat_part.h"
#include "base/error.h"
#include "base/regular_file.h"
#include "snapkv/lent_file.h"

namespace snapkv::chat {
namespace {

constexpr const char* kKind = "snapkv-document";
/// Separates a document from its question.
constexpr const char* kSeparator = "\n\n";

/// Returns a mark for the place between document and question that occurs nowhere in `text`.
std::string mark_for(const std::string& text) { return unused_mark("snapkv-question", text); }

RenderedChat render(const DocumentForm& form, Json messages) {
  const ChatTemplate tmpl = ChatTemplate::parse(form.template_source, form.template_name);
  if (!form.system.empty()) {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", form.system}});
  }
  Json variables = form.variables;
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = true;
  return tmpl.render(variables.dump());
}

size_t find_mark(const RenderedChat& chat, const std::string& mark, const std::string& name) {
  const size_t at = chat.text.find(mark);
  if (at == std::string::npos) {
    fail(ErrorCode::kUsage, "the chat template '{}' does not show the first message of the user",
         name);
  }
  return at;
}

std::string text_field(const Json& notes, const char* field, const std::string& path) {
  const auto found = notes.find(field);
  if (found == notes.end() || !found->is_string()) {
    fail(ErrorCode::kBadModel, "'{}': holds no document: its notes have no text '{}'", path, field);
  }
  return found->get<std::string>();
}

/// The pages that notes name, which those of older files do not.
PageMarks read_pages(const Json& notes, const std::string& path) {
  PageMarks pages;
  for (const Json& page : notes.value("pages", Json::array())) {
    const bool is_mark = page.is_array() && page.size() == 2 && page[0].is_number_unsigned() &&
                         page[1].is_number_unsigned() && page[1] <= INT_MAX;
    if (!is_mark || (!pages.empty() && page[0] < pages.back().begin)) {
      fail(ErrorCode::kBadModel,
           "'{}': page {} of its notes is no place after the one before and a number", path,
           pages.size() + 1);
    }
    pages.push_back({page[0].get<size_t>(), page[1].get<int>()});
  }
  return pages;
}

void read_notes(const std::string& text, const std::string& path, DocumentFile& file) {
  const Json notes = parse_held(text);
  if (!notes.is_object() || notes.value("kind", Json()) != kKind) {
    fail(ErrorCode::kBadModel,
         "'{}': a saved cache, but no document that questions can follow: 'snapkv compress' makes "
         "those",
         path);
  }
  file.form.template_source = text_field(notes, "template", path);
  file.form.template_name = text_field(notes, "template_name", path);
  file.form.system = text_field(notes, "system", path);
  file.model_path = text_field(notes, "model_path", path);
  file.notes = text_field(notes, "notes", path);
  file.pages = read_pages(notes, path);
  file.form.variables = notes.value("variables", Json::object());
  if (!file.form.variables.is_object()) {
    fail(ErrorCode::kBadModel, "'{}': the variables of its template are not an object", path);
  }
}

}  // namespace

RenderedChat document_part(const DocumentForm& form, const std::string& text) {
  if (form.template_source.empty()) return {text, {}};
  const std::string mark = mark_for(text + form.template_source + form.system);
  const RenderedChat chat =
      render(form, Json::array({{{"role", "user"}, {"content", text + kSeparator + mark}}}));
  return chat_part(chat, 0, find_mark(chat, mark, form.template_name));
}

RenderedChat question_part(const DocumentForm& form, const Json& given) {
  if (!given.is_array() || given.empty() || given[0].value("role", "") != "user") {
    fail(ErrorCode::kUsage,
         "the first message after a document must be the user's: its system message is the "
         "document's own");
  }
  Json messages = given;
  const std::string question = messages[0].value("content", "");
  if (form.template_source.empty()) {
    if (messages.size() > 1) {
      fail(ErrorCode::kUsage,
           "the document was read without a chat template: one message can follow it, not {}",
           messages.size());
    }
    return {question, {{0, question.size()}}};
  }
  const std::string mark = mark_for(given.dump() + form.template_source + form.system);
  messages[0]["content"] = mark + question;
  const RenderedChat chat = render(form, messages);
  return chat_part(chat, find_mark(chat, mark, form.template_name) + mark.size());
}

std::string document_text(const Model& model, const DocumentForm& form,
                          std::span<const int32_t> tokens) {
  const auto spelled = [&](std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) text += model.piece(id, true);
    return text;
  };
  // tokenizers may put a token or a blank before the text, which belong to its head
  const std::string mark = mark_for(form.template_source + form.system);
  const std::string around = spelled(model.tokenize(document_part(form, mark)));
  const size_t begin = find_mark({around, {}}, mark, form.template_name);
  const std::string head = around.substr(0, begin), tail = around.substr(begin + mark.size());
  std::string text = spelled(tokens);
  if (!text.starts_with(head)) {
    fail(ErrorCode::kBadModel, "the stored document does not begin as its chat template '{}' does",
         form.template_name);
  }
  text.erase(0, head.size());
  if (text.ends_with(tail)) text.resize(text.size() - tail.size());
  return text;
}

bool stores_every_row(const Model& model, int64_t n_tokens, uint64_t limit) {
  const ModelInfo& info = model.info();
  const uint64_t token = kv_bytes_per_token(info, stored_kv_type(info));
  return !model.on_device() && n_tokens * token <= limit;
}

std::string document_notes(const DocumentForm& form, const std::string& model_path,
                           const std::string& notes, const PageMarks& pages) {
  // JSON can't hold bytes that are not UTF-8; replacing them would give the path of another file
  const bool has_path = parse_held(to_text(Json(model_path))) == Json(model_path);
  Json page_marks = Json::array();
  for (const PageMark& page : pages) page_marks.push_back({page.begin, page.number});
  const Json json = {{"kind", kKind},
                     {"template", form.template_source},
                     {"template_name", form.template_name},
                     {"variables", form.variables},
                     {"system", form.system},
                     {"pages", std::move(page_marks)},
                     {"model_path", has_path ? model_path : ""},
                     {"notes", notes}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

/// `source`: a path, or a LentFile; `name` is what messages call it.
template <typename Source>
Document open_source(const Source& source, const std::string& name,
                     const std::shared_ptr<const Model>& model) {
  Document document;
  DocumentFile& file = document.file;
  file.keeps_all = is_prefix_file(source);
  if (file.keeps_all) {
    const SavedPrefix saved = describe_prefix(source);
    file.fingerprint = saved.fingerprint;
    file.model = saved.model;
    file.n_tokens = std::ssize(saved.tokens);
    read_notes(saved.notes, name, file);
    if (model) document.rows = KvPrefix::load(model, source);
  } else {
    document.compressed = std::make_shared<const SavedSessionFile>(source);
    const SavedSession& saved = document.compressed->saved();
    file.fingerprint = saved.fingerprint;
    file.model = saved.model;
    file.n_tokens = saved.n_past;
    file.options = saved.options;
    read_notes(saved.notes, name, file);
  }
  return document;
}

}  // namespace

Document open_document(const std::string& path, const std::shared_ptr<const Model>& model) {
  require_regular_file(path);
  return open_source(path, path, model);
}

Document open_document(const LentFile& file, const std::shared_ptr<const Model>& model) {
  return open_source(file, file.name, model);
}

}  // namespace snapkv::chat
