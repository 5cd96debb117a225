// status, issues, tail: what is going on, read from the topics.
#pragma once

#include <string>

namespace tocsin::app {

struct StatusOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;  // every line
  std::string at;    // a past moment (app/recordings/moment.h); empty: the present
  std::string run;   // only this one (app/view/which_run.h); empty: all
  std::string job;   // of `run`
};

struct IssueListOptions {
  std::string config_file;
  std::string out;
  bool json = false;
  bool all = false;  // resolved ones too
  std::string at;
  std::string job;   // only this one
  std::string rule;  // only this one
};

struct IssueShowOptions {
  std::string config_file;
  std::string out;
  bool json = false;
  std::string at;
  std::string id;  // any id or fingerprint of it, or the beginning of one
};

struct TailOptions {
  std::string config_file;
  std::string out;
  bool json = false;
  bool all = false;  // from the beginning
  std::string job;
  std::string rule;
};

// Each returns an exit code; 2: no moment; 4: broker or journal unreachable.
/// 1: something is unhealthy.
int status_command(const StatusOptions& options);
int issues_list(const IssueListOptions& options);
/// 1: no issue of this id, or several.
int issues_show(const IssueShowOptions& options);
/// Until SIGINT, SIGTERM, or stdout is closed.
int tail_command(const TailOptions& options);

}  // namespace tocsin::app
