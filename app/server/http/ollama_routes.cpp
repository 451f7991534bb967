// SPDX-License-Identifier: MIT
// The routes of Ollama's API, and those of other servers that are not there.
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/http/body.h"
#include "server/service.h"

namespace snapkv::server {
namespace {

using ReadOllama = Exchange (*)(const Json&, const ApiContext&);

}  // namespace

void Service::add_ollama_routes() {
  get("/api/version", [](const httplib::Request&, httplib::Response& response) {
    write_json(response, ollama_version_json());
  });
  get("/api/tags", [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, ollama_tags_json(context()));
  });
  get("/api/ps", [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, ollama_ps_json(context()));
  });
  post("/api/show",
       [](const ApiContext& all, Body& body, const httplib::Request&, httplib::Response& response) {
         write_json(response, ollama_show_json(body.json, all));
       });
  const auto add = [this](const char* path, ReadOllama read, bool chats) {
    post(path, [this, read, chats](const ApiContext& all, Body& body,
                                   const httplib::Request& request, httplib::Response& response) {
      if (const auto loaded = ollama_load_answer(body.json, all, chats)) {
        return write_json(response, *loaded);
      }
      answer_exchange(read(body.json, all), body, request, response);
    });
  };
  add("/api/chat", read_ollama_chat, true);
  add("/api/generate", read_ollama_generate, false);
}

void Service::add_missing_routes() {
  const auto add = [this](const char* path, const char* what) {
    const std::string message = what;
    post(path, [message](const ApiContext&, Body&, const httplib::Request&, httplib::Response&) {
      throw ApiError(501, message, "not_implemented");
    });
  };
  constexpr const char* kNoEmbeddings =
      "this server makes no embeddings: the model it has is one that writes text";
  for (const char* path : {"/v1/embeddings", "/embeddings", "/api/embed", "/api/embeddings"}) {
    add(path, kNoEmbeddings);
  }
  for (const char* path : {"/rerank", "/v1/rerank", "/reranking", "/v1/reranking"}) {
    add(path, "this server ranks no documents: the model it has is one that writes text");
  }
  add("/infill",
      "there is no /infill here: POST /v1/completions with 'prompt' and 'suffix' fills in");
  for (const char* path : {"/api/pull", "/api/push", "/api/create", "/api/copy"}) {
    add(path, "this server has the one model that it was started with: it can't be changed");
  }
}

}  // namespace snapkv::server
