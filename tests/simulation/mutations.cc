#include "tests/simulation/mutations.h"

#include <utility>
#include <vector>

#include "core/fields/stop_request.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::simulation {

std::string_view to_string(Mutation mutation) noexcept {
  switch (mutation) {
    case Mutation::none:
      return "none";
    case Mutation::drop_fence:
      return "drop_fence";
    case Mutation::positions_before_records:
      return "positions_before_records";
    case Mutation::forget_finished:
      return "forget_finished";
    case Mutation::skip_snapshot_piece:
      return "skip_snapshot_piece";
    case Mutation::resolve_twice:
      return "resolve_twice";
    case Mutation::forget_ahead:
      return "forget_ahead";
    case Mutation::trust_wall_clock:
      return "trust_wall_clock";
    case Mutation::stop_unasked:
      return "stop_unasked";
    case Mutation::forget_words:
      return "forget_words";
  }
  return "";
}

namespace {

bool is_resolve(const core::OutRecord& record) {
  return record.topic == "issues" && record.value &&
         record.value->find("\"status\":\"resolved\"") != std::string::npos;
}

class BadPublisher final : public core::RecordPublisher {
 public:
  BadPublisher(Mutation mutation, std::unique_ptr<core::RecordPublisher> inner)
      : mutation_(mutation), inner_(std::move(inner)) {}

  core::Status publish(const core::OutRecord& record) override {
    if (mutation_ != Mutation::stop_unasked || !record.key.starts_with(core::kApprovalPrefix)) {
      return inner_->publish(record);
    }
    const auto request = core::read_stop_request(*record.value);
    if (!request || request->state != "waiting") return inner_->publish(record);
    return inner_->publish(core::stop_request_record(
        core::decided(*request, "approved", "nobody", request->asked_at)));
  }
  core::Status flush(std::chrono::milliseconds timeout) override { return inner_->flush(timeout); }
  bool write_ahead(const core::OutRecord& record) override {
    if (mutation_ == Mutation::forget_ahead && ++ahead_ % 3 == 0) return true;
    return inner_->write_ahead(record);
  }
  core::Result<std::int32_t> partitions(std::string_view topic) override {
    return inner_->partitions(topic);
  }
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override {
    std::vector<core::OutRecord> all(records.begin(), records.end());
    if (mutation_ == Mutation::positions_before_records) {
      if (auto status = inner_->commit({}, positions); !status || all.empty()) return status;
      return inner_->commit(all, {});
    }
    if (mutation_ == Mutation::skip_snapshot_piece) {
      const auto piece = std::find_if(all.begin(), all.end(), [](const auto& record) {
        return record.topic == "rules-state" && record.value;
      });
      if (piece != all.end()) all.erase(piece);
    }
    if (mutation_ == Mutation::resolve_twice) {
      all.insert(all.end(), again_.begin(), again_.end());
    }
    const auto status = inner_->commit(all, positions);
    if (status) {
      again_.clear();
      std::copy_if(records.begin(), records.end(), std::back_inserter(again_), is_resolve);
    }
    return status;
  }

 private:
  Mutation mutation_;
  std::unique_ptr<core::RecordPublisher> inner_;
  std::vector<core::OutRecord> again_;
  int ahead_ = 0;
};

class BadTransport final : public ingest::Transport {
 public:
  BadTransport(Mutation mutation, ingest::Transport& inner) : mutation_(mutation), inner_(inner) {}

  core::Result<std::unique_ptr<core::RecordSource>> source(ingest::SourceOptions options) override {
    return inner_.source(std::move(options));
  }
  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      ingest::PublisherOptions options) override {
    auto made = inner_.publisher(std::move(options));
    if (!made) return made;
    return std::unique_ptr<core::RecordPublisher>(
        std::make_unique<BadPublisher>(mutation_, std::move(*made)));
  }
  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override {
    return inner_.lease(name);
  }
  core::Status ensure_topics() override { return inner_.ensure_topics(); }
  core::Result<std::vector<ingest::TopicState>> topic_states() override {
    return inner_.topic_states();
  }
  core::Status ping(std::chrono::milliseconds timeout) override { return inner_.ping(timeout); }
  core::Status apply_retention(core::WallTime now) override { return inner_.apply_retention(now); }
  [[nodiscard]] bool is_kafka() const override { return inner_.is_kafka(); }
  [[nodiscard]] std::string describe() const override { return inner_.describe(); }

 private:
  Mutation mutation_;
  ingest::Transport& inner_;
};

class WallClockOnly final : public core::Clock {
 public:
  explicit WallClockOnly(const core::Clock& inner) : inner_(inner) {}
  [[nodiscard]] core::WallTime now() const override { return inner_.now(); }
  [[nodiscard]] core::Duration monotonic() const override {
    return core::Duration(core::nanoseconds(inner_.now()));
  }

 private:
  const core::Clock& inner_;
};

/// Everything as the stage inside has it, but for what is read back, or was said before it began.
class Forgetful final : public app::Stage {
 public:
  Forgetful(Mutation mutation, std::unique_ptr<app::Stage> inner)
      : mutation_(mutation), inner_(std::move(inner)) {}

  [[nodiscard]] const app::StageWiring& wiring() const override { return inner_->wiring(); }
  core::Status open(const app::Instant& now) override {
    opened_ = now.steady;
    return inner_->open(now);
  }
  core::Status restore(std::int32_t partition, const core::RecordView& record) override {
    if (mutation_ == Mutation::forget_finished) return core::ok();
    return inner_->restore(partition, record);
  }
  core::Result<std::vector<core::Position>> restored(std::int32_t partition,
                                                     std::span<const core::Position> committed,
                                                     const app::Instant& now) override {
    return inner_->restored(partition, committed, now);
  }
  void started(std::int32_t partition, const app::Instant& now) override {
    inner_->started(partition, now);
  }
  std::optional<app::Refusal> handle(const core::RecordView& record,
                                     const app::StageContext& context) override {
    const bool is_word = record.topic == core::topic::kRouterControl &&
                         record.text().find("\"decided_by\":") != std::string_view::npos;
    if (mutation_ == Mutation::forget_words && is_word &&
        context.now.steady - opened_ < std::chrono::seconds(2)) {
      return std::nullopt;
    }
    return inner_->handle(record, context);
  }
  std::optional<core::Duration> tick(const app::StageTick& tick) override {
    return inner_->tick(tick);
  }
  app::StageOutput take(const app::Instant& now) override { return inner_->take(now); }
  void committing() override { inner_->committing(); }
  void committed(const app::Instant& now) override { inner_->committed(now); }
  void revoked(std::span<const core::StreamPartition> partitions) override {
    inner_->revoked(partitions);
  }
  void lost(std::span<const core::StreamPartition> partitions) override {
    inner_->lost(partitions);
  }
  void finish(const app::Instant& now) override { inner_->finish(now); }
  [[nodiscard]] bool busy() const override { return inner_->busy(); }

 private:
  Mutation mutation_;
  std::unique_ptr<app::Stage> inner_;
  core::Duration opened_{};  // steady
};

}  // namespace

std::unique_ptr<ingest::Transport> mutate(Mutation mutation, ingest::Transport& inner) {
  if (mutation == Mutation::none || mutation == Mutation::drop_fence ||
      mutation == Mutation::forget_finished || mutation == Mutation::trust_wall_clock ||
      mutation == Mutation::forget_words) {
    return nullptr;
  }
  return std::make_unique<BadTransport>(mutation, inner);
}

std::unique_ptr<core::Clock> mutate(Mutation mutation, const core::Clock& inner) {
  if (mutation != Mutation::trust_wall_clock) return nullptr;
  return std::make_unique<WallClockOnly>(inner);
}

std::unique_ptr<app::Stage> mutate(Mutation mutation, std::unique_ptr<app::Stage> inner) {
  const std::string& name = inner->wiring().name;
  const bool is_wrong = (mutation == Mutation::forget_finished && name == "deliver") ||
                        (mutation == Mutation::forget_words && name == "runs");
  if (!is_wrong) return inner;
  return std::make_unique<Forgetful>(mutation, std::move(inner));
}

}  // namespace tocsin::simulation
