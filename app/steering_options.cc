#include "app/steering_options.h"

#include <memory>
#include <string>

#include "app/capture_run.h"
#include "app/place_options.h"
#include "app/silence_commands.h"
#include "app/stop_run.h"
#include "core/time.h"

namespace tocsin::app {
namespace {

template <typename Options>
void add_run_of(CLI::App& command, Options& out) {
  command
      .add_option("run", out.run,
                  "uid of the run or its beginning, its job where one run of it goes on, or the "
                  "run's own name")
      ->required();
  command.add_option("--job", out.job, "job of the run");
}

void add_duration(CLI::App& command, const std::string& name, core::Duration& out,
                  const std::string& help) {
  command.add_option_function<std::string>(
      name,
      [&out, name](const std::string& text) {
        const auto given = core::parse_duration(text);
        if (!given) {
          throw CLI::ValidationError(name, "\"" + text + "\" is no duration, such as 30s or 5m");
        }
        out = *given;
      },
      help);
}

}  // namespace

void add_stop(CLI::App& app, Invocation& out) {
  auto* stop = app.add_subcommand("stop", "ask a run to stop, and see what becomes of it");
  const auto options = std::make_shared<StopRunOptions>();
  add_run_of(*stop, *options);
  stop->add_option("--reason", options->reason, "why: stands in the command, and people are told");
  stop->add_option("--mode", options->terms.mode,
                   "stop | checkpoint_then_stop | pause (default: checkpoint_then_stop)")
      ->check(CLI::IsMember({"stop", "checkpoint_then_stop", "pause"}));
  add_duration(
      *stop, "--ack", options->terms.ack,
      "a loop that has not accepted by then: its node's agent sends SIGTERM (default: 30s)");
  add_duration(*stop, "--grace", options->terms.grace, "from SIGTERM to SIGKILL (default: 1m)");
  stop->add_flag("--force", options->terms.allow_force, "SIGKILL is allowed");
  add_duration(*stop, "--wait", options->wait,
               "how long to wait for the end; 0s: not at all (default: 2m)");
  stop->add_flag("--dry-run", options->dry_run, "say what would be asked, and write nothing");
  add_place(*stop, *options);
  stop->footer(
      "Only the attempt that runs now is asked. The exit code is 0 when it has stopped or had "
      "ended, "
      "1 when there is\nno such run or the stop came to nothing, 75 when it is not over within "
      "--wait; what was asked then stands.\n\n"
      "Examples:\n  tocsin stop digits --reason \"wrong learning rate\"\n  tocsin stop 4e3046d4 "
      "--mode stop --force --wait 0s");
  stop->callback([&out, options] { out.run = [options] { return stop_run(*options); }; });
}

void add_silence(CLI::App& app, Invocation& out) {
  auto* silence = app.add_subcommand(
      "silence", "for a time nobody is told of issues that match, and no run stopped for them");
  silence->require_subcommand(1);
  const auto options = std::make_shared<SilenceOptions>();
  auto* add = silence->add_subcommand("add", "begin one");
  add->add_option("matchers", options->matchers,
                  "label=\"value\", with =, !=, =~ or !~; all of them hold (docs/routing.md)");
  add->add_option("--run", options->run, "this run: uid or its beginning, job, or name with --job");
  add->add_option("--job", options->job, "this job, all its runs");
  add_duration(*add, "--for", options->lasts, "how long (default: 1h)");
  add->add_option("--comment", options->comment, "why")->required();
  add_duration(*add, "--in", options->begins, "begins after so long (default: at once)");
  add->add_option("--author", options->author, "who asks (default: user@host)");
  add->add_option("--actions", options->actions,
                  "notify | stop_training: hold back that alone (default: both)")
      ->check(CLI::IsMember({"notify", "stop_training"}));
  add->add_flag("--dry-run", options->dry_run, "show which open issues match, and write nothing");
  add_place(*add, *options);
  add->callback([&out, options] { out.run = [options] { return silence_add(*options); }; });
  auto* list = silence->add_subcommand("list", "those in force and to come");
  list->add_flag("--all", options->all, "those that ended within five days, too");
  add_place(*list, *options);
  list->callback([&out, options] { out.run = [options] { return silence_list(*options); }; });
  auto* expire = silence->add_subcommand("expire", "end one now");
  expire->add_option("id", options->id, "id from the list; its beginning is enough")->required();
  add_place(*expire, *options);
  expire->callback([&out, options] { out.run = [options] { return silence_expire(*options); }; });
  silence->footer(
      "Examples:\n  tocsin silence add --run digits --for 2h --comment \"known, looked at\"\n"
      "  tocsin silence add 'rule=\"overfit\"' --actions stop_training --comment \"let them "
      "run\"\n  tocsin silence expire sil_4f2k");
}

void add_capture(CLI::App& app, Invocation& out) {
  auto* capture =
      app.add_subcommand("capture", "ask a run that goes on to capture more, and see its answer");
  const auto options = std::make_shared<CaptureRunOptions>();
  add_run_of(*capture, *options);
  auto* collections = capture->add_option("--collection", options->collections,
                                          "a collection that is built in (docs/collections.md)");
  capture->add_option("--statistic", options->statistics,
                      "beside the base columns (docs/statistics.md)");
  capture->add_flag("--raw", options->raw, "the elements, too (docs/raw-tensors.md)");
  capture->add_option("--every", options->every, "each so many steps (default: 1)")
      ->check(CLI::PositiveNumber);
  capture
      ->add_option("--steps", options->steps,
                   "for so many steps from now on (default: 100; of a pause: until --resume)")
      ->check(CLI::PositiveNumber);
  auto* stacks = capture->add_flag("--stacks", options->stacks,
                                   "instead: where each rank stands, its threads' stacks, at once");
  auto* trace = capture->add_option("--trace", options->trace,
                                    "instead: a trace of PyTorch's profiler of so many steps, the "
                                    "same on all ranks (docs/capture-by-hand.md)");
  trace->check(CLI::Range(1, 10000))->excludes(stacks)->excludes(collections);
  stacks->excludes(collections);
  auto* pause = capture->add_flag("--pause", options->pause,
                                  "instead: no tensors are captured, until --resume");
  auto* resume = capture->add_flag("--resume", options->resume, "take back a pause");
  for (CLI::Option* one : {pause, resume}) {
    one->excludes(collections)->excludes(stacks)->excludes(trace);
  }
  resume->excludes(pause);
  capture->add_option("--reason", options->reason, "why: stands in the command");
  capture->add_flag("--end", options->end, "withdraw what you have asked for")
      ->excludes(collections)
      ->excludes(stacks)
      ->excludes(trace)
      ->excludes(pause)
      ->excludes(resume);
  add_duration(*capture, "--wait", options->wait,
               "how long to wait for answers; 0s: not at all (default: 30s)");
  capture->add_flag("--dry-run", options->dry_run, "say what would be asked, and write nothing");
  add_place(*capture, *options);
  capture->footer(
      "Captures of several askers unite in the run. The exit code is 0 when every rank captures "
      "it, "
      "1 when there is\nno such run or a rank refuses, 75 when not every rank has answered within "
      "--wait; what was asked then stands.\n\n"
      "Examples:\n  tocsin capture digits --collection gradients --statistic quantiles --steps "
      "200\n  tocsin capture digits --stacks\n  tocsin capture digits --end");
  capture->callback([&out, options] {
    const bool named = !options->collections.empty() || options->stacks || options->trace > 0 ||
                       options->pause || options->resume;
    if (!options->end && !named) {
      throw CLI::ValidationError(
          "--collection",
          "name what to capture, or give --stacks, --trace, --pause, --resume or "
          "--end");
    }
    out.run = [options] { return capture_run(*options); };
  });
}

}  // namespace tocsin::app
