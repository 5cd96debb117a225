// The sections of the shared configuration file that a training process reads, declared once: for the hook, for the
// program, which reads them too, and for the schema. What stands in other sections is not the hook's business.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/hook/capture/capture.h"
#include "config/config.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

struct SharedSections {
  ingest::TransportConfig transport;
  ingest::TopicsConfig topics;
  std::string cluster;
  std::map<std::string, std::string> labels;
  CaptureConfig capture;
};

/// `transport`, `topics`, `cluster` and `labels`.
void read_place(config::Reader& root, SharedSections& out);
/// `capture`.
void read_capture(config::Reader& root, SharedSections& out);

/// As a hook reads the file: each problem is a text with file, line, column and key, and leaves the default.
std::vector<std::string> read_shared(const std::string& path,
                                     const config::Environment& environment, SharedSections& out);

}  // namespace tocsin::hook
