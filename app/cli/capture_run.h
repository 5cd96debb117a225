// `tocsin capture RUN`: a person asks a run that goes on for denser captures, over the topic
// `commands`, and sees what its ranks answer (docs/capture-by-hand.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"

namespace tocsin::app {

struct CaptureRunOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string run;          // as which_run.h finds it
  std::string job;
  std::vector<std::string> collections;
  std::vector<std::string> statistics;  // of each of them, beside the base columns
  bool raw = false;                     // the elements, too
  std::int64_t every = 1;               // steps
  std::int64_t steps = 0;               // for so many; 0: 100, of a pause until it is taken back
  std::string reason;
  bool stacks = false;                             // instead: where its ranks stand
  std::int64_t trace = 0;                          // instead: PyTorch's profiler, so many steps
  bool pause = false;                              // instead: no tensors are captured
  bool resume = false;                             // takes back such a pause, whoever asked for it
  bool end = false;                                // withdraws what this person has asked for
  core::Duration wait = std::chrono::seconds(30);  // for the answers; zero: none
  bool dry_run = false;
  bool json = false;
};

/// 0: every rank has applied it, has said where it stands, or has sent its trace (with `wait` zero or a dry run: it was, or would be, asked); 1: no
/// such run, it has ended, or a rank has refused; 4: broker or journal unreachable; 75: not all have
/// answered within `wait`.
int capture_run(const CaptureRunOptions& options);

}  // namespace tocsin::app
