// SPDX-License-Identifier: MIT
// C API of libsnapkv_server.so: `snapkv serve` in the process of another program, for those that run
// many of them, as the Python package does on Ray. It answers HTTP on a Unix socket, and borrows
// saved caches that the process has in memory.
//
//   const char* words[] = {"-m", "model.gguf", "--parallel", "8"};
//   snapkv_server *server = NULL;
//   char error[4096];
//   if (snapkv_server_start(4, words, "/tmp/mine/http", &server, error, sizeof(error)) != 0) ...
//   // GET /health, POST /v1/chat/completions ... on the socket
//   snapkv_server_stop(server, 30);
//
// Functions return 0, or an error code of snapkv.h with a message in `error`, cut to error_size
// bytes; `error` may be NULL.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snapkv_server snapkv_server;

// Starts a server with the options of `snapkv serve`, as on a command line after that word, and
// returns when its model is loaded; the environment and the configuration file count as they do
// there. It listens at the Unix socket `socket` (a path of at most 107 bytes, where nothing is yet),
// which only this user can use. --port means nothing then; --host says from where requests come in
// the end: only if that is a loopback address are those by another host's name refused. Log lines go
// to stderr.
int snapkv_server_start(int n_words, const char* const* words, const char* socket,
                        snapkv_server** server, char* error, size_t error_size);

// Finishes what runs, at most for `seconds`, ends the server and frees it. NULL: nothing happens.
void snapkv_server_stop(snapkv_server* server, double seconds);

// Makes a saved cache known by a name: the content of a file that `snapkv compress`, the server's
// /v1/kv/snapshots or its /v1/kv/prompts have made. Requests name a document in `kv.snapshot`, a
// prompt in `kv.read`. The `size` bytes at `data`, which must begin at a multiple of 64, are read
// where they are and must not change until `release(user)` is called (once, by any thread): after
// the name was withdrawn or got other bytes, and no request uses them any more. After an error they
// are not used, and `release` is not called.
int snapkv_server_lend(snapkv_server* server, const char* name, const void* data, size_t size,
                       void (*release)(void* user), void* user, char* error, size_t error_size);

// Forgets a lent cache; requests that use it go on. SNAPKV_ERROR_USAGE if there is none.
int snapkv_server_withdraw(snapkv_server* server, const char* name, char* error,
                           size_t error_size);

#ifdef __cplusplus
}
#endif
