#include "app/report/recorded_curves.h"

#include <cstdlib>
#include <system_error>
#include <utility>

#include "app/recordings/recording.h"
#include "core/topics.h"

namespace tocsin::app::report {

core::Result<std::unique_ptr<RecordedCurves>> RecordedCurves::of(ingest::Transport& transport,
                                                                 const core::RunUid& run) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "tocsin-report-XXXXXX");
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return core::unavailable("no folder for temporary files can be made: " + folder);
  }
  std::unique_ptr<RecordedCurves> out(new RecordedCurves(folder));
  if (auto status = out->read(transport, run); !status) return status.error();
  return out;
}

RecordedCurves::~RecordedCurves() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

core::Result<std::unique_ptr<insights::SeriesReader>> RecordedCurves::reader() const {
  return insights::SeriesReader::open(folder_ / "curves.db");
}

core::Status RecordedCurves::read(ingest::Transport& transport, const core::RunUid& run) {
  insights::SetAside moved;
  auto store = insights::SeriesWriter::open(folder_ / "curves.db", "report", moved);
  if (!store) return store.error();
  ingest::JsonScalarDecoder json;
  core::Status failed = core::ok();
  const auto take = [&](const core::RecordView& record) {
    (void)ingest::decode_telemetry(record, json,
                                   [&](const core::FrameView& frame, const core::FrameBody& body) {
                                     if (frame.header().run == run)
                                       insights::fold_frame(frame, body, **store);
                                   });
  };
  const auto keep = [&] {
    if (failed) failed = (*store)->commit({});
  };
  const auto end = read_recording(transport, core::topic::kTelemetry, {}, take, keep);
  if (!end) return end.error();
  keep();
  return failed;
}

}  // namespace tocsin::app::report
