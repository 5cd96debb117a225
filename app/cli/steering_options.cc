#include "app/cli/steering_options.h"

#include <memory>
#include <string>

#include "app/cli/capture_run.h"
#include "app/cli/duration_option.h"
#include "app/cli/place_options.h"
#include "app/cli/send_test.h"
#include "app/cli/stop_run.h"
#include "app/cli/stops_commands.h"
#include "app/cli/template_command.h"
#include "core/time.h"

namespace tocsin::app {
namespace {

template <typename Options>
void add_dry_run(CLI::App& command, Options& out) {
  command.add_flag("--dry-run", out.dry_run, "Show the request without sending it");
}

void add_targets(CLI::App& capture, CaptureRunOptions& out) {
  auto* collections = capture
                          .add_option("--collection", out.collections,
                                      "Capture this built-in collection (docs/collections.md); "
                                      "repeatable")
                          ->type_name("NAME");
  capture
      .add_option("--statistic", out.statistics,
                  "Add this statistic to the base columns (docs/statistics.md); repeatable")
      ->type_name("NAME");
  capture.add_flag("--raw", out.raw, "Capture the tensors' elements too (docs/raw-tensors.md)");
  capture.add_option("--every", out.every, "Capture one step out of this many (default: 1)")
      ->type_name("STEPS")
      ->check(CLI::PositiveNumber);
  capture
      .add_option(
          "--steps", out.steps,
          "Capture for this many steps from now (default: 100; a pause lasts until --resume)")
      ->type_name("STEPS")
      ->check(CLI::PositiveNumber);
  auto* stacks = capture.add_flag("--stacks", out.stacks,
                                  "Show the stacks of all threads of each rank instead");
  auto* trace = capture
                    .add_option("--trace", out.trace,
                                "Record 1 to 10000 steps with PyTorch's profiler instead, the same "
                                "on all ranks (docs/capture-by-hand.md)")
                    ->type_name("STEPS");
  trace->check(CLI::Range(1, 10000))->excludes(stacks)->excludes(collections);
  stacks->excludes(collections);
  auto* pause = capture.add_flag("--pause", out.pause, "Stop capturing tensors until --resume");
  auto* resume =
      capture.add_flag("--resume", out.resume, "End a pause, no matter who requested it");
  for (CLI::Option* one : {pause, resume}) {
    one->excludes(collections)->excludes(stacks)->excludes(trace);
  }
  resume->excludes(pause);
  capture.add_flag("--end", out.end, "Withdraw your own requests")
      ->excludes(collections)
      ->excludes(stacks)
      ->excludes(trace)
      ->excludes(pause)
      ->excludes(resume);
}

}  // namespace

void add_stop(CLI::App& app, CommandRun& out) {
  auto* stop = app.add_subcommand("stop");
  const auto options = std::make_shared<StopRunOptions>();
  add_run_name(*stop, *options)->required();
  stop->add_option("--reason", options->reason, "Record the reason; notifications repeat it")
      ->type_name("TEXT");
  stop->add_option("--mode", options->terms.mode,
                   "Stop in this mode (default: checkpoint_then_stop)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"stop", "checkpoint_then_stop", "pause"}));
  add_duration(
      *stop, "--ack", options->terms.ack,
      "Send SIGTERM if the training loop does not acknowledge within this time (default: 30s)");
  add_duration(*stop, "--grace", options->terms.grace,
               "Wait this long after SIGTERM before SIGKILL (default: 1m)");
  stop->add_flag("--force", options->terms.allow_force, "Allow SIGKILL after --grace");
  add_duration(*stop, "--wait", options->wait,
               "Wait up to this long for the run to end; 0s does not wait (default: 2m)");
  add_dry_run(*stop, *options);
  add_place(*stop, *options);
  stop->callback([&out, options] { out = [options] { return stop_run(*options); }; });
}

void add_stops(CLI::App& app, CommandRun& out) {
  auto* stops = app.add_subcommand("stops");
  stops->require_subcommand(1);
  const auto options = std::make_shared<StopWordOptions>();
  const auto add = [&](const char* name, int (*run)(const StopWordOptions&)) {
    auto* command = stops->add_subcommand(name);
    command->callback([&out, options, run] { out = [options, run] { return run(*options); }; });
    return command;
  };
  const auto of_one = [&](CLI::App* command) {
    command
        ->add_option("id", options->id, "Command ID from `tocsin stops list`, or a unique prefix")
        ->type_name("ID")
        ->required();
  };
  auto* list = add("list", stops_list);
  list->add_flag("--all", options->all, "Show stops that are over too");
  add_place(*list, *options);
  auto* show = add("show", stops_show);
  of_one(show);
  add_place(*show, *options);
  auto* approve = add("approve", stops_approve);
  of_one(approve);
  add_duration(*approve, "--wait", options->wait,
               "Wait up to this long for the server to ask the run; 0s does not wait "
               "(default: 10s)");
  auto* cancel = add("cancel", stops_cancel);
  of_one(cancel);
  for (CLI::App* one : {approve, cancel}) {
    one->add_option("--comment", options->comment, "Record the reason")->type_name("TEXT");
    add_place(*one, *options);
  }
}

void add_send_test(CLI::App& app, CommandRun& out) {
  auto* test = app.add_subcommand("send-test");
  const auto options = std::make_shared<SendTestOptions>();
  test->add_option("receiver", options->receiver,
                   "Test this receiver, or one integration by its ID: RECEIVER/TYPE")
      ->type_name("RECEIVER")
      ->required();
  test->add_flag("--drill", options->drill, "Send the close too: open an incident and end it");
  test->add_option("--severity", options->severity,
                   "Set the severity of the message (default: warning)")
      ->type_name("SEVERITY")
      ->check(CLI::IsMember({"info", "warning", "error", "critical"}));
  add_dry_run(*test, *options);
  add_config_file(*test, options->config_file);
  add_output(*test, options->json);
  test->callback([&out, options] { out = [options] { return send_test(*options); }; });
}

void add_template(CLI::App& app, CommandRun& out) {
  auto* templates = app.add_subcommand("template");
  templates->require_subcommand(1);
  auto* render = templates->add_subcommand("render");
  const auto options = std::make_shared<TemplateRenderOptions>();
  render
      ->add_option("receiver", options->receiver,
                   "Render for this receiver, or one integration by its ID: RECEIVER/TYPE")
      ->type_name("RECEIVER")
      ->required();
  render
      ->add_option("--issue", options->issue,
                   "Render this recorded issue: ID from `tocsin issues list` or prefix (default: "
                   "an example)")
      ->type_name("ID");
  render->add_flag("--resolved", options->resolved, "Render the message that closes the incident");
  add_place(*render, *options);
  render->callback([&out, options] { out = [options] { return template_render(*options); }; });
}

void add_capture(CLI::App& app, CommandRun& out) {
  auto* capture = app.add_subcommand("capture");
  const auto options = std::make_shared<CaptureRunOptions>();
  add_run_name(*capture, *options)->required();
  add_targets(*capture, *options);
  capture->add_option("--reason", options->reason, "Record the reason")->type_name("TEXT");
  add_duration(*capture, "--wait", options->wait,
               "Wait up to this long for replies; 0s does not wait (default: 30s)");
  add_dry_run(*capture, *options);
  add_place(*capture, *options);
  capture->callback([&out, options] {
    const bool named = !options->collections.empty() || options->stacks || options->trace > 0 ||
                       options->pause || options->resume;
    if (!options->end && !named) {
      throw CLI::ValidationError(
          "--collection",
          "name what to capture, or give --stacks, --trace, --pause, --resume or "
          "--end");
    }
    out = [options] { return capture_run(*options); };
  });
}

}  // namespace tocsin::app
