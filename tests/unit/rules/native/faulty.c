/* Libraries that are wrong in one way each (CMakeLists.txt defines which). FAILS: fires above 2, and
 * answers with an error above 100. */
#include <stdlib.h>

#include "tocsin_rule.h"

struct tocsin_rule {
  int unused;
};

uint32_t tocsin_rule_abi_version(void) {
#ifdef WRONG_ABI
  return TOCSIN_RULE_ABI + 1;
#else
  return TOCSIN_RULE_ABI;
#endif
}

const char* tocsin_rule_describe(void) {
#if defined(NO_JSON)
  return "faulty";
#elif defined(NO_STATE_BYTES)
  return "{\"name\":\"faulty\"}";
#else
  return "{\"name\":\"faulty\",\"state_bytes\":0}";
#endif
}

tocsin_rule* tocsin_rule_create(const char* parameters, char* error, uint32_t size) {
  (void)parameters;
  (void)error;
  (void)size;
  return malloc(sizeof(tocsin_rule));
}

void tocsin_rule_init(const tocsin_rule* rule, void* state) {
  (void)rule;
  (void)state;
}

#ifndef NO_UPDATE
int32_t tocsin_rule_update(const tocsin_rule* rule, void* state, const tocsin_rule_row* row,
                           tocsin_rule_finding* finding) {
  (void)rule;
  (void)state;
  finding->observed = row->sum;
  if (row->sum > 100) return -5;
  return row->sum > 2 ? TOCSIN_RULE_HIT : TOCSIN_RULE_OK;
}
#endif

void tocsin_rule_destroy(tocsin_rule* rule) { free(rule); }
