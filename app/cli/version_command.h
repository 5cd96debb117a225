// `tocsin version`.
#pragma once

namespace tocsin::app {

struct VersionOptions {
  bool json = false;
};
/// Always 0.
int version_command(const VersionOptions& options);

}  // namespace tocsin::app
