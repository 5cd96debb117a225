/* The ABI of native rules: a shared object that judges rows, one at a time (docs/rules/native.md).
 *
 * C only, plain structs that begin with their size, fixed-width types. A library exports the six
 * functions below. Tocsin calls them from one thread at a time per rule object, but from several
 * threads for several objects: keep no state outside `state` and the rule object.
 */
#ifndef TOCSIN_RULE_H
#define TOCSIN_RULE_H

#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

/* NOLINTBEGIN(modernize-*,readability-identifier-naming) */

#ifdef __cplusplus
extern "C" {
#endif

#define TOCSIN_RULE_ABI 1

#if defined(__GNUC__)
#define TOCSIN_RULE_EXPORT __attribute__((visibility("default")))
#else
#define TOCSIN_RULE_EXPORT
#endif

/* A row: one tensor, or one scalar, of one worker at one step. Codes: docs/wire.md. */
typedef struct tocsin_rule_row {
  uint32_t size; /* of this struct, as the program knows it; read no member beyond it */
  uint8_t mode;  /* 0 global, 1 train, 2 eval, 3 predict */
  uint8_t dtype;
  uint8_t role;      /* 1 weight, 2 bias, 3 gradient, 4 loss, … */
  uint8_t is_scalar; /* 1: one logged value, which is `sum` */
  int64_t step;      /* of its mode */
  int64_t time;      /* of measurement, UTC ns */
  uint64_t name;     /* hash of the name, to tell units apart */
  uint64_t count;
  double sum;
  double sumsq;
  double m2; /* sum of squares around the mean */
  double abs_sum;
  double min; /* NaN when any element is; meaningless when count is 0 */
  double max;
  uint64_t nan;
  uint64_t posinf;
  uint64_t neginf;
  uint64_t zero;
  uint64_t negative;
  uint32_t world_size; /* 0 unknown */
  uint32_t flags;      /* 0 */
  double loss_scale;   /* by which a gradient that still has it is to be divided; else 1 */
} tocsin_rule_row;

/* What an evaluation came to. */
enum {
  TOCSIN_RULE_OK = 0,
  TOCSIN_RULE_HIT = 1,
  TOCSIN_RULE_INSUFFICIENT = 2,  /* neither good nor bad: too little is known yet */
  TOCSIN_RULE_NOT_APPLICABLE = 3 /* the rule does not speak of such a row */
  /* any negative number: an error; the rule's status is `Error`, with the number */
};

/* Of a hit. */
typedef struct tocsin_rule_finding {
  uint32_t size;
  uint32_t flags;   /* 0 */
  double observed;  /* what was found, */
  double threshold; /* and what it was compared with */
} tocsin_rule_finding;

typedef struct tocsin_rule tocsin_rule; /* one rule with its parameters: the library's own */

/* TOCSIN_RULE_ABI, as it was when the library was built. */
TOCSIN_RULE_EXPORT uint32_t tocsin_rule_abi_version(void);
/* JSON that stays valid: name, version, state_bytes, and what the texts say (docs/rules/native.md). */
TOCSIN_RULE_EXPORT const char* tocsin_rule_describe(void);
/* Parameters are a JSON object. NULL: they are wrong; up to `size` bytes of `error`, zero at the end,
 * say why. */
TOCSIN_RULE_EXPORT tocsin_rule* tocsin_rule_create(const char* parameters, char* error,
                                                   uint32_t size);
/* Fills the state of a unit that is new. It is moved, saved and loaded as bytes: no pointers. */
TOCSIN_RULE_EXPORT void tocsin_rule_init(const tocsin_rule* rule, void* state);
/* Judges one row of a unit. Must not block, allocate without need, or throw. Same state and row:
 * same answer. */
TOCSIN_RULE_EXPORT int32_t tocsin_rule_update(const tocsin_rule* rule, void* state,
                                              const tocsin_rule_row* row,
                                              tocsin_rule_finding* finding);
TOCSIN_RULE_EXPORT void tocsin_rule_destroy(tocsin_rule* rule);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
#endif /* TOCSIN_RULE_H */
