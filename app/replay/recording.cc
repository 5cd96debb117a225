#include "app/replay/recording.h"

#include "core/topics.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {
constexpr std::size_t kBatch = 1024;
}

core::Result<RecordingEnd> read_recording(ingest::Transport& transport, core::RecordHandler handle,
                                          core::FunctionRef<void()> between) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kTelemetry};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  RecordingEnd end;
  for (;;) {
    const auto read = (*source)->poll(100ms, kBatch, handle);
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (!read) ++end.gaps;
    between();
    if (read && *read == 0 && (*source)->at_end()) return end;
  }
}

}  // namespace tocsin::app
