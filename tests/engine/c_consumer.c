/* SPDX-License-Identifier: MIT
 * A program in C99 that answers a question with the embedded model; the result is checked. */
#include <snapkv/snapkv.h>
#include <stdio.h>
#include <string.h>

static char error[400];

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, error);
  return 1;
}

int main(int argc, char** argv) {
  static const char kPrompt[] =
      "The special number of Paris is 48213. The grass is green and the sky is blue.\n"
      "The special number of Paris is";
  snapkv_options* options = snapkv_options_new();
  snapkv_model* model;
  snapkv_session* session;
  snapkv_tokens* prompt;
  snapkv_generator* answer;
  snapkv_token token = {0};
  char text[256] = "";
  if (argc != 2) return 2;
  if (snapkv_options_set(options, "model", argv[1], error, sizeof error) != SNAPKV_OK ||
      snapkv_options_set(options, "temperature", "0", error, sizeof error) != SNAPKV_OK ||
      snapkv_options_set(options, "max_tokens", "8", error, sizeof error) != SNAPKV_OK) {
    return failed("options");
  }
  model = snapkv_model_load(options, NULL, NULL, error, sizeof error);
  if (model == NULL) return failed("model");
  session = snapkv_session_new(model, options, error, sizeof error);
  if (session == NULL) return failed("session");
  prompt = snapkv_tokenize(model, kPrompt, strlen(kPrompt), 1, 1, error, sizeof error);
  if (prompt == NULL) return failed("tokenize");
  if (snapkv_prefill(session, prompt->ids, prompt->n, NULL, NULL, error, sizeof error) !=
      SNAPKV_OK) {
    return failed("prefill");
  }
  answer = snapkv_generator_new(session, options, NULL, NULL, 0, error, sizeof error);
  if (answer == NULL) return failed("generator");
  while (!token.is_last) {
    if (snapkv_generator_step(answer, &token, error, sizeof error) != SNAPKV_OK) {
      return failed("step");
    }
    if (strlen(text) + token.n_text < sizeof text) strncat(text, token.text, token.n_text);
  }
  printf("%s\n", text);
  snapkv_generator_free(answer);
  snapkv_tokens_free(prompt);
  snapkv_session_free(session);
  snapkv_model_free(model);
  snapkv_options_free(options);
  return strstr(text, "48213") != NULL ? 0 : 1;
}
