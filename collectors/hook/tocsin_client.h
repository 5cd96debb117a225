/* C interface of the training hook, libtocsin_client.so.0 (ABI version 2).
 *
 * Rules of the line: handles are opaque; every struct begins with its size, so that later versions
 * may add fields at the end; results are int32_t: 0 ok, > 0 nothing was done and that is fine
 * (dropped, not due, disabled, time over), < 0 an error whose text tocsin_last_error() has. Nothing
 * is thrown or freed across the line, no pointer that a caller passes is kept after the call, and
 * no call blocks except flush and close, which are bounded by their argument. Texts are UTF-8.
 * All functions may be called from any thread. After fork() every handle of the parent is disabled
 * in the child: calls on it return TOCSIN_DISABLED and touch nothing.
 *
 * Versions: a function that is added raises none; one whose arguments or whose meaning change raises TOCSIN_ABI_VERSION
 * and gets a node of that number in tocsin_client.map, so that a program which was linked with the former one is refused
 * by the loader. Who looks functions up by name compares tocsin_abi_version() with the version it was written for.
 * 2: tocsin_step_next() takes scalars besides times.
 */
#ifndef TOCSIN_CLIENT_H
#define TOCSIN_CLIENT_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers) */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

/* C, with C's customs. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

#define TOCSIN_ABI_VERSION 2

#if defined(__GNUC__)
#define TOCSIN_API __attribute__((visibility("default")))
#else
#define TOCSIN_API
#endif

/* Results. */
enum {
  TOCSIN_OK = 0,
  TOCSIN_DROPPED = 1,   /* the queue was full; counted and reported in the stream */
  TOCSIN_NOT_DUE = 2,   /* nothing is to be captured at this step */
  TOCSIN_DISABLED = 3,  /* TOCSIN_DISABLED=1, or the handle belongs to the process we forked from */
  TOCSIN_TIMEOUT = 4,   /* the time was over before everything was delivered */
  TOCSIN_NOT_FOUND = 5, /* tocsin_command: nothing is wanted in this slot */
  TOCSIN_INVALID = -1,  /* a wrong argument */
  TOCSIN_CLOSED = -2,   /* the client is closed */
  TOCSIN_INTERNAL = -3, /* our own defect, contained */
  TOCSIN_TOO_SMALL = -4 /* the buffer is too small; *length says what is needed */
};

/* Modes, dtypes and roles: the codes of the wire format, docs/wire.md. */
enum {
  TOCSIN_MODE_GLOBAL = 0,
  TOCSIN_MODE_TRAIN = 1,
  TOCSIN_MODE_EVAL = 2,
  TOCSIN_MODE_PREDICT = 3
};

/* Types of names. 1 … 8 are those of the dictionary on the wire; the others stay in the client. */
enum {
  TOCSIN_NAME_TENSOR = 1,
  TOCSIN_NAME_SCALAR = 2,
  TOCSIN_NAME_SPAN = 6,
  TOCSIN_NAME_TRACK = 7,
  TOCSIN_NAME_SPAN_ARGS = 8,
  TOCSIN_NAME_COLLECTION = 128, /* the id is what tocsin_due() takes */
  TOCSIN_NAME_COMMAND = 129     /* a slot that the training loop handles ("adjust/lr") */
};

/* Of tocsin_tensor.flags, beside the row flags: captured although this step is not on its
 * collections' grid, for a model whose updates never fall on it, at its next one; elements. */
enum {
  TOCSIN_TENSOR_OFF_GRID = 1,
  TOCSIN_TENSOR_RAW = 2 /* its elements, too, whatever its collections say */
};

/* What stop_requested() answers, as bits. */
enum { TOCSIN_WANTS_STOP = 1, TOCSIN_WANTS_ATTENTION = 2 };

/* Flags of tocsin_step_end(): low 16 bits; micro-steps (0 = 1) in the high 16 bits. */
enum { TOCSIN_STEP_OPTIMIZER_SKIPPED = 1 };

typedef struct tocsin_client tocsin_client;

/* All texts may be null. Zero everything, set `size`, fill in what is known. */
typedef struct tocsin_options {
  uint64_t size;
  const char* run;       /* name or UUID of the run; null: TOCSIN_RUN, then the launcher's id */
  const char* job;       /* human name of what is trained; null: TOCSIN_JOB, then the script */
  const char* worker;    /* null: worker_<rank> */
  const char* out;       /* "kafka://host:9092[,host:9092]" or a directory; null: TOCSIN_BROKERS,
                            TOCSIN_OUT, the configuration, ./tocsin-data */
  const char* config;    /* configuration file; null: TOCSIN_CONFIG, else none */
  const char* capture;   /* section `capture` as JSON or YAML text; lies over the file's */
  const char* labels;    /* JSON object of texts */
  const char* framework; /* "pytorch 2.3" */
  const char* script;    /* what is run, for the default of `job` */
  int32_t rank;          /* -1: from the environment */
  int32_t world_size;    /* -1: from the environment */
  uint32_t attempt;      /* 0: from the environment */
  uint32_t reserved;
  uint64_t queue_bytes; /* 0: 64 MiB */
  /* Rules that judge in this process, by libtocsin_engine.so.0, as rules/embedded/tocsin_engine.h says:
   * names, a YAML file, or YAML text. Null: nobody judges here, and that library is not loaded. What
   * keeps them from judging stands in tocsin_counters() as judge.error; the hook is open all the same. */
  const char* rules;
  const char* stop; /* who of them may stop the run: null nobody, a severity, names of rules */
} tocsin_options;

typedef struct tocsin_name_info {
  uint64_t size;
  int32_t dtype;
  int32_t role; /* -1: by type and name (weight, bias, gradient, loss, metric) */
  uint32_t ndim;
  uint32_t reserved;
  const int64_t* dims;
  const char* attrs;      /* JSON object for the dictionary; null: none */
  const char* collection; /* further collection that the tensor joins; null: none */
} tocsin_name_info;

typedef struct tocsin_tensor {
  uint64_t size;
  uint64_t id;            /* from tocsin_name */
  const void* data;       /* host memory; null with 0 elements */
  const int64_t* shape;   /* elements per dimension; null with ndim 0: one element */
  const int64_t* strides; /* in elements; null: contiguous, row major */
  uint32_t ndim;
  int32_t dtype;
  uint64_t flags; /* row flags of the wire (bits 16 … 22), TOCSIN_TENSOR_… */
} tocsin_tensor;

/* One row of canonical statistics, computed elsewhere (on a device): the 14 columns of the wire. */
typedef struct tocsin_row {
  uint64_t name;
  uint64_t count;
  double sum, sumsq, m2, abs_sum, min, max;
  uint64_t nan, posinf, neginf, zero, negative;
  uint64_t meta; /* dtype, role and row flags; dtype and role 0: as the name was registered */
} tocsin_row;

/* A span of the track "phase", as tocsin_span() takes it. */
typedef struct tocsin_scalar {
  uint64_t name;
  double value;
} tocsin_scalar;

typedef struct tocsin_time {
  uint64_t name;
  int64_t start, duration;
} tocsin_time;

/* Which raw tensor: `name` and `worker` are ids of names (XXH64); worker 0: the first that has it. */
typedef struct tocsin_raw_query {
  uint64_t size;
  uint64_t name;
  uint64_t worker;
  int64_t step; /* of the mode */
  uint32_t mode;
  uint32_t reserved;
} tocsin_raw_query;

typedef struct tocsin_raw_value {
  uint64_t size;
  const void* data; /* row major; this and dims: until the next call on the reader */
  uint64_t bytes;
  const int64_t* dims;
  uint32_t ndim;
  int32_t dtype;
  uint64_t meta; /* dtype, role and row flags of the wire */
  int64_t step;
  int64_t global_step;
} tocsin_raw_value;

typedef struct tocsin_raw tocsin_raw;
typedef struct tocsin_copy tocsin_copy;

/* The library's ABI version; a caller refuses another one than its own. */
TOCSIN_API int32_t tocsin_abi_version(void);
/* What went wrong in this thread's last call with a negative result; never null. */
TOCSIN_API const char* tocsin_last_error(void);

/* Opens the client of this process, or hands out the one that is open. Returns at once: the
 * transport is opened in the background, and a broker that is down never delays. */
TOCSIN_API int32_t tocsin_open(const tocsin_options* options, tocsin_client** client);
/* Registers a name and gives its id (XXH64 of the text). Doing it again updates the info. */
TOCSIN_API int32_t tocsin_name(tocsin_client* client, int32_t type, const char* text, size_t length,
                               const tocsin_name_info* info, uint64_t* id);
/* 0 when a tensor of this name and role (-1: by the name) would be captured at all, else
 * TOCSIN_NOT_DUE: for callers that must do something before they have one (hooks on modules). */
TOCSIN_API int32_t tocsin_wanted(tocsin_client* client, const char* name, size_t length,
                                 int32_t role);
/* How often the answers of tocsin_wanted() may have changed since the client was opened: a rule has
 * asked for more over the topic `commands`, or no longer does. */
TOCSIN_API int32_t tocsin_plan_changes(tocsin_client* client);
TOCSIN_API int32_t tocsin_set_mode(tocsin_client* client, int32_t mode);
/* 0 when the collection (0: any) is to be captured at the present step, else TOCSIN_NOT_DUE. */
TOCSIN_API int32_t tocsin_due(tocsin_client* client, uint64_t collection);
/* The same for the step that comes `ahead` steps after the present one: for callers whose values
 * come from a device, and who therefore end steps here later than they happen. */
TOCSIN_API int32_t tocsin_due_at(tocsin_client* client, uint64_t collection, uint32_t ahead);
/* due[i]: 1 when any collection of the tensor ids[i] is to be captured at the step that comes `ahead`
 * steps after the present one, 3 when with its elements, else 0: for statistics that are computed elsewhere, about which
 * tocsin_statistics() asks nothing. */
TOCSIN_API int32_t tocsin_due_of(tocsin_client* client, const uint64_t* ids, size_t count,
                                 uint32_t ahead, uint8_t* due);
/* Reduces those tensors whose collections are due; the others are skipped. */
TOCSIN_API int32_t tocsin_tensors(tocsin_client* client, const tocsin_tensor* tensors,
                                  size_t count);
TOCSIN_API int32_t tocsin_statistics(tocsin_client* client, const tocsin_row* rows, size_t count);
TOCSIN_API int32_t tocsin_scalars(tocsin_client* client, const uint64_t* ids, const double* values,
                                  size_t count);
/* Times in UTC nanoseconds; duration -1: an instant. track 0: "phase"; args 0: none. */
TOCSIN_API int32_t tocsin_span(tocsin_client* client, uint64_t name, uint64_t track, int64_t start,
                               int64_t duration, uint64_t args);
TOCSIN_API int32_t tocsin_step_end(tocsin_client* client, uint32_t flags);
/* The same and, before it, scalars and times of the step's phases, in one call: for callers whose calls are dear. TOCSIN_OK: ask
 * tocsin_due() at the step that begins. TOCSIN_NOT_DUE: nothing of it is captured, so there is no need to, until the step
 * ends or one of tocsin_name(), _define(), _set_mode(), _lifecycle() is called. */
TOCSIN_API int32_t tocsin_step_next(tocsin_client* client, uint32_t flags,
                                    const tocsin_scalar* scalars, size_t scalar_count,
                                    const tocsin_time* times, size_t time_count);
/* For the Python package, in a thread that holds the interpreter's lock: a new reference to a dictionary of functions
 * (collectors/hook/abi/abi_python.cc), through which the calls of every step go without ctypes between. Null: this process has no
 * CPython whose functions can be seen, or the handle is of another process. */
TOCSIN_API void* tocsin_python(tocsin_client* client);
/* TOCSIN_WANTS_… bits, 0 when nothing is wanted (or on any error); two atomic operations. A stop of
 * many ranks names the train step at whose end all of them leave: it is wanted from then on. Whoever
 * asks says with it where it stands: a command that comes later for that step is too late. */
TOCSIN_API int32_t tocsin_stop_requested(tocsin_client* client);
/* The same for a loop that has ended `ahead` more train steps than it has told here. */
TOCSIN_API int32_t tocsin_stop_requested_at(tocsin_client* client, uint32_t ahead);
/* Copies the command of a slot ("stop", "adjust/lr") as JSON, as it stands in the topic
 * (docs/events.md); null slot: a JSON array of the slots that the loop has not seen. Reading a slot marks it as seen. */
TOCSIN_API int32_t tocsin_command(tocsin_client* client, const char* slot, char* buffer,
                                  size_t size, size_t* length);
/* {"command_id","phase"[,"action","reason","checkpoint":{"path","bytes"},"version",
 * "effective_step","exit_code"]}: an ack of docs/events.md; the client sets the command's revision
 * and who answers, whatever is given of these. */
TOCSIN_API int32_t tocsin_ack(tocsin_client* client, const char* json, size_t length);
/* {"event":"start","continues_from":n,"steps":{"train":n,…},"global_step":n}: counters of a resumed
 * run; {"event":"leave","reason":…}: this worker takes no further part; {"event":"preflight",
 * "findings":[{"kind","model","count","names"[,"threads","collectives","asked_by","command_id"]}]}: what looks wrong (docs/wire.md);
 * the same event with the one finding {"kind":"alert","title","text","level","count"}: what the script wants people to
 * hear (docs/hook.md, "Alerts"); the caller sees to it that it does not come too often;
 * {"event":"heartbeat","expect_next_in":seconds}: the loop's own word that it goes on, and will be heard of
 * again within that time (0: it promises nothing any more). */
TOCSIN_API int32_t tocsin_lifecycle(tocsin_client* client, const char* json, size_t length);
/* Identity, steps and what the client counted, as a JSON object. */
TOCSIN_API int32_t tocsin_counters(tocsin_client* client, char* buffer, size_t size,
                                   size_t* length);
/* The collections of this client as a JSON object: name -> {"config": as in `capture.collections`,
 * "tensors": names that belong to it so far}. */
TOCSIN_API int32_t tocsin_collections(tocsin_client* client, char* buffer, size_t size,
                                      size_t* length);
/* The script's own collections, before the first record: text as of `capture.collections` (JSON or
 * YAML). One of a name that is there takes its place. TOCSIN_INVALID: too late, or not understood; then
 * nothing has changed. */
TOCSIN_API int32_t tocsin_define(tocsin_client* client, const char* collections, size_t length);
/* Issues that the rules in this process found, from number `since` on, as a JSON list in the order in
 * which they were decided (rules/embedded/tocsin_engine.h); after tocsin_close() with a null handle those
 * of the client that was closed last. TOCSIN_NOT_FOUND: no rules judge here. */
TOCSIN_API int32_t tocsin_issues(tocsin_client* client, uint64_t since, char* buffer, size_t size,
                                 size_t* length);
/* Waits until there are more than `seen` of them, the training is over and judged (TOCSIN_TIMEOUT), or
 * the time is over (the same). This and tocsin_issues() may be called while another thread closes the
 * client: TOCSIN_CLOSED. */
TOCSIN_API int32_t tocsin_wait_issues(tocsin_client* client, uint64_t seen, uint32_t milliseconds);
/* Nobody waits for issues any more: waits end at once, now and later. For an interpreter that is about to
 * go, whose threads must be gone before. */
TOCSIN_API int32_t tocsin_wake(tocsin_client* client);
/* Everything so far is delivered, and judged by the rules in this process. */
TOCSIN_API int32_t tocsin_flush(tocsin_client* client, uint32_t milliseconds);
/* Sends `end` with the outcome (completed | failed | stopped_by_rule | stopped_by_person | interrupted | unknown; or a
 * JSON object {"outcome"[,"error","exit_code"]}), delivers what it can within the time, drops the
 * rest, frees the handle. Null outcome: leaves without `end`. */
TOCSIN_API int32_t tocsin_close(tocsin_client* client, const char* outcome, uint32_t milliseconds);
/* Closes the client when the process calls exit(), which alone knows the status: with this outcome
 * for status 0 (and for 77 if it is stopped_by_rule), else as failed with the status as exit_code.
 * What could not be delivered is one line on stderr unless TOCSIN_QUIET is set. The handle stays
 * open until then. Where a system does not tell handlers the status: closes now, as unknown. */
TOCSIN_API int32_t tocsin_close_at_exit(tocsin_client* client, const char* outcome,
                                        uint32_t milliseconds);
/* The counters of the client that this process closed last, and `loss`: what it could not deliver,
 * in one sentence. TOCSIN_NOT_FOUND: none was closed. */
TOCSIN_API int32_t tocsin_closed(char* buffer, size_t size, size_t* length);
/* A reader of the raw tensors of a run, wherever they lie: {"run": uid, "out", "config", "capture": as in
 * tocsin_options}. It needs no client and writes nothing. TOCSIN_NOT_FOUND: there is no such topic. */
TOCSIN_API int32_t tocsin_raw_open(const char* options, size_t length, tocsin_raw** raw);
/* The newest tensor of this name, worker and step; waits so long for it to come. One thread at a time.
 * TOCSIN_NOT_FOUND: it did not come; tocsin_last_error() says what is missing. */
TOCSIN_API int32_t tocsin_raw_read(tocsin_raw* raw, const tocsin_raw_query* query,
                                   uint32_t milliseconds, tocsin_raw_value* value);
/* What the reader counted, as a JSON object that lives until the next call on it. */
TOCSIN_API const char* tocsin_raw_counters(tocsin_raw* raw);
TOCSIN_API int32_t tocsin_raw_close(tocsin_raw* raw);
/* The telemetry of a run, copied from a cluster into a directory: {"out": "kafka://…", "config": as in tocsin_options, "run": uid or the
 * beginning of one, absent: the newest, "directory"}. It needs no client, and leaves the cluster as it is. A copy that was ended goes on in
 * the same directory. TOCSIN_NOT_FOUND: there is no such run, or no such topic; TOCSIN_TIMEOUT: nothing answers. */
TOCSIN_API int32_t tocsin_copy_open(const char* options, size_t length, tocsin_copy** copy);
/* The uid of the run, as text; lives as long as the copy. */
TOCSIN_API const char* tocsin_copy_run(tocsin_copy* copy);
/* Copies what is there and not copied yet, or waits so long for it; how many records. One thread at a time. */
TOCSIN_API int32_t tocsin_copy_next(tocsin_copy* copy, uint32_t milliseconds, uint64_t* records);
TOCSIN_API int32_t tocsin_copy_close(tocsin_copy* copy);
/* In a child process: forgets the parent's client, so that a new one may be opened here. */
TOCSIN_API int32_t tocsin_after_fork(tocsin_client* client);
/* Pure: columns 1 … 13 of a row as doubles (count … meta). tier: 0, the base columns; others are
 * reserved (TOCSIN_INVALID). */
TOCSIN_API int32_t tocsin_reduce(const tocsin_tensor* tensor, double out[13], int32_t tier);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
#endif /* TOCSIN_CLIENT_H */
