// `tocsin send-test RECEIVER`: a marked message by the real actions of the configuration, with what
// was asked and answered (docs/send-test.md).
#pragma once

#include <string>

#include "core/issue.h"

namespace tocsin::app {

struct SendTestOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string receiver;     // a receiver, or the id of one integration
  std::string severity = "warning";
  bool drill = false;    // close what was opened
  bool dry_run = false;  // show the requests and send none
  bool json = false;
};

/// 0: every message arrived; 1: one did not, or the receiver has no action that takes a message; 2:
/// there is no such receiver; 3: the configuration has errors; 75: none was refused, and one may
/// arrive later.
int send_test(const SendTestOptions& options);

}  // namespace tocsin::app
