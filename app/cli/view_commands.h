// status, issues, tail: what is going on, read from the topics.
#pragma once

#include <string>

namespace tocsin::app {

struct ViewOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;  // status: every line; issues: resolved ones too; tail: from the beginning
  std::string job;   // issues, tail: only this one; status: `run` is one of its runs
  std::string rule;
  std::string at;   // all but tail: a past moment (app/recordings/moment.h); empty: the present
  std::string run;  // status: of this run alone (app/view/which_run.h)
  std::string id;   // issues show: any id or fingerprint of it, or the beginning of one
};

// Each returns an exit code; 2: no moment; 4: broker or journal unreachable.
/// 1: something is unhealthy.
int status_command(const ViewOptions& options);
int issues_list(const ViewOptions& options);
/// 1: no issue of this id, or several.
int issues_show(const ViewOptions& options);
/// Until SIGINT, SIGTERM, or stdout is closed.
int tail_command(const ViewOptions& options);

}  // namespace tocsin::app
