// Which records of `telemetry` are of one run.
#pragma once

#include "core/identity.h"
#include "core/record.h"
#include "ingest/ingest.h"

namespace tocsin::app {

class RecordsOfRun {
 public:
  /// nil: all are, of whatever run or node.
  explicit RecordsOfRun(const core::RunUid& run) : run_(run) {}
  bool operator()(const core::RecordView& record) {
    if (run_.nil()) return true;
    bool ours = false;
    const auto look = [&](const core::FrameView& frame, const core::FrameBody& /*body*/) {
      ours = ours || frame.header().run == run_;
    };
    (void)ingest::decode_telemetry(record, json_, look);  // what nobody can read is nobody's
    return ours;
  }

 private:
  core::RunUid run_;
  ingest::JsonScalarDecoder json_;
};

}  // namespace tocsin::app
