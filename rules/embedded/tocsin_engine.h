/* C interface of libtocsin_engine.so.0: the rules, judging inside the process that they watch.
 *
 * The training hook loads it when rules are asked for (tocsin_options.rules) and only then, so that
 * nobody else pays for it; the two libraries share nothing but this line. Handles are opaque,
 * results are int32_t as in tocsin_client.h (0 ok, > 0 nothing done, < 0 an error whose text
 * tocsin_engine_last_error() has), texts are UTF-8, nothing is thrown or freed across the line.
 * Functions may be called from any thread, but for open and close, which belong to one. After
 * fork() the handles of the parent are dead in the child and must not be used there.
 */
#ifndef TOCSIN_ENGINE_H
#define TOCSIN_ENGINE_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers) */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

/* C, with C's customs. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

#define TOCSIN_ENGINE_ABI_VERSION 1

#if defined(__GNUC__)
#define TOCSIN_ENGINE_API __attribute__((visibility("default")))
#else
#define TOCSIN_ENGINE_API
#endif

enum {
  TOCSIN_ENGINE_OK = 0,
  TOCSIN_ENGINE_DROPPED = 1,   /* the queue was full; counted */
  TOCSIN_ENGINE_TIMEOUT = 2,   /* the time was over first */
  TOCSIN_ENGINE_INVALID = -1,  /* a wrong argument, rules that do not exist or do not parse */
  TOCSIN_ENGINE_INTERNAL = -2, /* our own defect, contained */
  TOCSIN_ENGINE_TOO_SMALL = -3 /* the buffer is too small; *length says what is needed */
};

typedef struct tocsin_engine tocsin_engine;

typedef struct tocsin_engine_options {
  uint64_t size;
  const char* rules; /* names of rules and groups with commas between, the path of a YAML file, or
                        YAML text that begins with '{'; null: the group `default` */
  const char* stop;  /* who may stop the run: null or empty nobody, a severity (that and above), or
                        names of rules with commas between */
  uint64_t queue_bytes; /* 0: 64 MiB */
  /* A record for the topic `commands` of the run that is watched: called on the judging thread.
   * headers: `count` names, each followed by its value. */
  void (*command)(void* context, const char* key, size_t key_length, const char* value,
                  size_t value_length, const char* const* headers, size_t count);
  void* context;
} tocsin_engine_options;

TOCSIN_ENGINE_API int32_t tocsin_engine_abi_version(void);
/* What went wrong in this thread's last call with a negative result; never null. */
TOCSIN_ENGINE_API const char* tocsin_engine_last_error(void);

/* Reads the rules and starts the judging thread. */
TOCSIN_ENGINE_API int32_t tocsin_engine_open(const tocsin_engine_options* options,
                                             tocsin_engine** engine);
/* One record of topic telemetry, copied; in the order in which they are published. Time in UTC
 * nanoseconds. Waits for nothing. */
TOCSIN_ENGINE_API int32_t tocsin_engine_record(tocsin_engine* engine, const char* key,
                                               size_t key_length, const void* value,
                                               size_t value_length, int64_t time);
/* Issues from number `since` on (0: all), as a JSON list in the order in which they were decided:
 * {"number", "text", "told", "data"}: a sentence for people, whether a person wants to be told of
 * it by itself (no shadow rule, and nothing that followed from another issue), and the data of the
 * event (docs/events.md) with its id. */
TOCSIN_ENGINE_API int32_t tocsin_engine_issues(tocsin_engine* engine, uint64_t since, char* buffer,
                                               size_t size, size_t* length);
/* Waits until there are more than `seen` issues, all is judged, or the time is over. */
TOCSIN_ENGINE_API int32_t tocsin_engine_wait(tocsin_engine* engine, uint64_t seen,
                                             uint32_t milliseconds);
/* Nobody waits for issues from now on: waits end at once. */
TOCSIN_ENGINE_API int32_t tocsin_engine_wake(tocsin_engine* engine);
/* Waits until everything that was handed in before is judged. */
TOCSIN_ENGINE_API int32_t tocsin_engine_catch_up(tocsin_engine* engine, uint32_t milliseconds);
/* {"records","refused","dropped","waiting","issues","stops","seconds","rules","error"}; seconds is the
 * processor time of the judging thread. */
TOCSIN_ENGINE_API int32_t tocsin_engine_stats(tocsin_engine* engine, char* buffer, size_t size,
                                              size_t* length);
/* Processor time of the judging thread in nanoseconds; 0 for no engine. */
TOCSIN_ENGINE_API int64_t tocsin_engine_cost(tocsin_engine* engine);
/* Nothing more comes: judges what is queued and what waited for a later record. Sends no command
 * from now on. TOCSIN_ENGINE_TIMEOUT: not through yet; it goes on in the background. */
TOCSIN_ENGINE_API int32_t tocsin_engine_finish(tocsin_engine* engine, uint32_t milliseconds);
/* Frees the handle. A thread that hangs in a rule is left behind and calls nobody any more. */
TOCSIN_ENGINE_API int32_t tocsin_engine_close(tocsin_engine* engine);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
#endif /* TOCSIN_ENGINE_H */
