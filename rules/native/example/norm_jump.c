/* A native rule: the norm of a tensor jumps against the mean of its norms so far.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<tocsin>/rules/native -o libnorm_jump.so norm_jump.c -lm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tocsin_rule.h"

struct tocsin_rule {
  double factor;
  uint64_t warm_up;
};

/* Of one tensor of one worker and mode. */
typedef struct {
  uint64_t seen;
  double mean;
} norm_state;

uint32_t tocsin_rule_abi_version(void) { return TOCSIN_RULE_ABI; }

const char* tocsin_rule_describe(void) {
  return "{\"name\":\"norm_jump\",\"version\":\"1\",\"state_bytes\":16,"
         "\"parameters\":{\"factor\":10,\"warm_up\":20},"
         "\"roles\":[\"gradient\"],\"needs\":[\"gradients\"],"
         "\"observed\":\"norm_ratio\",\"operator\":\">\",\"threshold\":\"factor\","
         "\"summary\":\"The norm of {name} is {observed} times its mean so far at {place}.\","
         "\"recommendation\":\"Look at the batch of this step; clip gradients.\"}";
}

/* Enough for two numbers that the program has checked to be numbers. A rule with more to read takes
 * a JSON library. */
static int number_at(const char* json, const char* name, double* out) {
  const char* at = strstr(json, name);
  if (at == NULL) return 0;
  at = strchr(at, ':');
  if (at == NULL) return 0;
  *out = strtod(at + 1, NULL);
  return 1;
}

tocsin_rule* tocsin_rule_create(const char* parameters, char* error, uint32_t size) {
  double factor = 10;
  double warm_up = 20;
  number_at(parameters, "\"factor\"", &factor);
  number_at(parameters, "\"warm_up\"", &warm_up);
  if (!(factor > 1)) {
    snprintf(error, size, "factor: expected more than 1");
    return NULL;
  }
  if (!(warm_up >= 1)) {
    snprintf(error, size, "warm_up: expected at least 1");
    return NULL;
  }
  tocsin_rule* rule = malloc(sizeof *rule);
  if (rule == NULL) return NULL;
  rule->factor = factor;
  rule->warm_up = (uint64_t)warm_up;
  return rule;
}

void tocsin_rule_init(const tocsin_rule* rule, void* state) {
  (void)rule;
  memset(state, 0, sizeof(norm_state));
}

int32_t tocsin_rule_update(const tocsin_rule* rule, void* state, const tocsin_rule_row* row,
                           tocsin_rule_finding* finding) {
  norm_state* s = state;
  if (row->count == 0) return TOCSIN_RULE_NOT_APPLICABLE;
  const double norm = sqrt(row->sumsq) / row->loss_scale;
  if (!isfinite(norm)) return TOCSIN_RULE_INSUFFICIENT; /* exploding_tensor speaks of those */
  const int enough = s->seen >= rule->warm_up;
  const double ratio = s->mean > 0 ? norm / s->mean : 0;
  s->mean += (norm - s->mean) / (double)(++s->seen);
  if (!enough) return TOCSIN_RULE_INSUFFICIENT;
  if (!(ratio > rule->factor)) return TOCSIN_RULE_OK;
  finding->observed = ratio;
  finding->threshold = rule->factor;
  return TOCSIN_RULE_HIT;
}

void tocsin_rule_destroy(tocsin_rule* rule) { free(rule); }
