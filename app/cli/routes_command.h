// `tocsin routes`: the tree as it holds, and where labels lead in it (docs/routes.md).
#pragma once

#include <string>
#include <vector>

namespace tocsin::app {

struct RoutesOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // where `issue` is looked for
  bool json = false;
  std::vector<std::string> labels;    // test: name=value
  std::string issue;                  // test: the labels of this one
  std::string file;                   // test: cases
  std::vector<std::string> expected;  // test: receivers
  bool expects = false;               // `expected` was given, perhaps empty
  std::string at;                     // test: time intervals as of then; empty: not looked at
  bool explain = false;               // test: which matcher failed elsewhere
};

// Each returns an exit code; 1: other receivers than expected, or no such issue; 2: no labels, or no time; 3: the
// configuration or the file of cases has errors; 4: unreachable.
int routes_tree(const RoutesOptions& options);
int routes_test(const RoutesOptions& options);

}  // namespace tocsin::app
