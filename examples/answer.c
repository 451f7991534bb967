// SPDX-License-Identifier: MIT
// C: one answer about a document, through the C API.
//
//   cc -Iinclude examples/answer.c -Lbuild/release -lsnapkv_c -o answer
//   question="Question: What is the secret number of Rome? Answer: The secret number of Rome is"
//   ./answer models/needle.gguf examples/facts.txt "$question"
#include <snapkv/snapkv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char error[400];

static void must(int ok) {
  if (ok) return;
  fprintf(stderr, "%s\n", error);
  exit(1);
}

static void set(snapkv_options* options, const char* name, const char* value) {
  must(snapkv_options_set(options, name, value, error, sizeof error) == SNAPKV_OK);
}

// The document and the question after it, for free().
static char* read_prompt(const char* path, const char* question) {
  char* text = NULL;
  size_t n = 0, capacity = 0;
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  do {
    if (n == capacity) capacity = 2 * capacity + 4096;
    text = realloc(text, capacity + strlen(question) + 2);
    if (text == NULL) exit(1);
    n += fread(text + n, 1, capacity - n, file);
  } while (!feof(file) && !ferror(file));
  fclose(file);
  text[n] = '\n';
  strcpy(text + n + 1, question);
  return text;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s MODEL FILE QUESTION\n", argv[0]);
    return 2;
  }
  snapkv_options* options = snapkv_options_new();
  must(options != NULL);
  set(options, "model", argv[1]);
  set(options, "kv_budget", "64");  // rows kept per layer and KV head
  set(options, "temperature", "0");
  set(options, "max_tokens", "20");
  set(options, "stop", "\n");
  snapkv_model* model = snapkv_model_load(options, NULL, NULL, error, sizeof error);
  must(model != NULL);
  snapkv_session* session = snapkv_session_new(model, options, error, sizeof error);
  must(session != NULL);

  char* text = read_prompt(argv[2], argv[3]);
  snapkv_tokens* prompt = snapkv_tokenize(model, text, strlen(text), 1, 1, error, sizeof error);
  must(prompt != NULL);
  must(snapkv_prefill(session, prompt->ids, prompt->n, NULL, NULL, error, sizeof error) == SNAPKV_OK);

  snapkv_generator* answer =
      snapkv_generator_new(session, options, NULL, NULL, 0, error, sizeof error);
  must(answer != NULL);
  snapkv_token token = {0};
  while (!token.is_last) {
    must(snapkv_generator_step(answer, &token, error, sizeof error) == SNAPKV_OK);
    fwrite(token.text, 1, token.n_text, stdout);
    fflush(stdout);
  }
  putchar('\n');
  snapkv_generator_free(answer);
  snapkv_tokens_free(prompt);
  snapkv_session_free(session);
  snapkv_model_free(model);
  snapkv_options_free(options);
  free(text);
  return 0;
}
