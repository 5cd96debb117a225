// `tocsin report`: what rules found of a run and summed up, as one page, as text or as JSON.
#pragma once

#include <string>

#include "app/cli/rule_choice.h"

namespace tocsin::app {

struct ReportOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // --from: kafka://host:9092 or a directory, before any file
  std::string
      run;  // a uid or its beginning, a job, or with `job` the run's name; empty: the only one
  std::string job;
  bool judge = false;  // judge the directory `out` now instead of reading what was told there
  RuleChoice rules;    // with `judge`
  std::string at;  // a past moment (app/recordings/moment.h), of what was told; empty: the present
  std::string html;      // write the page into this file; "-": to stdout
  std::string markdown;  // the beginning of it as Markdown into this file; "-": to stdout
  std::string bundle;    // write page, notebooks and documents of rules into this folder
  bool json = false;
};

/// 0: written; 1: there is no such run, or the file cannot be written; 2: a name that does not exist; 3:
/// configuration; 4: broker or journal unreachable.
int report_command(const ReportOptions& options);

}  // namespace tocsin::app
