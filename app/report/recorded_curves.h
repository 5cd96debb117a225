// Values that a recording holds of one run, as the store keeps them, for as long as a report is made.
#pragma once

#include <filesystem>
#include <memory>

#include "core/identity.h"
#include "core/result.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace tocsin::app::report {

class RecordedCurves {
 public:
  /// Reads all of `telemetry`. unavailable: the folder of temporary files takes no more.
  static core::Result<std::unique_ptr<RecordedCurves>> of(ingest::Transport& transport,
                                                          const core::RunUid& run);
  ~RecordedCurves();  // nothing stays
  RecordedCurves(const RecordedCurves&) = delete;
  RecordedCurves& operator=(const RecordedCurves&) = delete;

  [[nodiscard]] core::Result<std::unique_ptr<insights::SeriesReader>> reader() const;

 private:
  explicit RecordedCurves(std::filesystem::path folder) : folder_(std::move(folder)) {}
  core::Status read(ingest::Transport& transport, const core::RunUid& run);

  std::filesystem::path folder_;
};

}  // namespace tocsin::app::report
