#include "tests/simulation/process.h"

namespace tocsin::simulation {

using namespace std::chrono_literals;

Process::Process(const Ground& ground, std::string name, Build build, Wrap wrap)
    : ground_(ground),
      name_(std::move(name)),
      build_(std::move(build)),
      wrap_(std::move(wrap)),
      log_(*ground.trace, name_) {}

Process::~Process() {
  if (running()) crash();
}

void Process::start() {
  connection_ = ground_.broker->connect(name_);
  if (wrap_) wrapped_ = wrap_(*connection_);
  transport_ = wrapped_ ? wrapped_.get() : connection_.get();
  lease_due_ = frozen_until_ = restart_at_ = {};
  build_(*this);
  ground_.trace->say(name_, "starts");
}

void Process::end() {
  units_.clear();
  leadership_.reset();
  kept_.clear();
  wrapped_.reset();
  connection_.reset();
  transport_ = nullptr;
}

void Process::crash() {
  ground_.broker->die(*connection_);
  end();
}

void Process::stop() {
  for (auto& unit : units_) unit.loop->close();
  if (leadership_) leadership_->release();
  end();
}

void Process::lead() {
  auto lease = transport_->lease("router-lease");
  leadership_ = std::make_unique<app::Leadership>(std::move(*lease), *ground_.clock, log_,
                                                  *ground_.telemetry);
}

void Process::add(std::unique_ptr<app::Stage> stage) {
  app::LoopPorts ports;
  ports.transport = transport_;
  ports.clock = ground_.loops != nullptr ? ground_.loops : ground_.clock;
  ports.log = &log_;
  ports.telemetry = ground_.telemetry;
  ports.committer = app::inline_committer();
  ports.leadership = leadership_.get();
  Unit unit;
  unit.loop = std::make_unique<app::TopicLoop>(*stage, std::move(ports));
  unit.stage = std::move(stage);
  units_.push_back(std::move(unit));
}

bool Process::frozen() const { return ground_.clock->monotonic() < frozen_until_; }

bool Process::ready() const {
  for (const auto& unit : units_) {
    if (!unit.loop->ready()) return false;
  }
  return running() && !frozen();
}

void Process::step(Random& random) {
  const core::Duration now = ground_.clock->monotonic();
  if (!running()) {
    if (now >= restart_at_) start();
    return;
  }
  if (frozen()) return;
  if (leadership_ && now >= lease_due_) {
    leadership_->step(0ms);
    lease_due_ = now + (leads() ? 1000ms : 300ms);
  }
  if (!units_.empty()) units_[random.index(units_.size())].loop->step(0ms);
}

}  // namespace tocsin::simulation
