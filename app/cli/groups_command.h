// `tocsin groups`: what the router has grouped, who was told, and why it waits (docs/groups.md).
#pragma once

#include <string>

namespace tocsin::app {

struct GroupsOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  std::string route;        // only groups of this route
  std::string integration;  // only groups of which it was told something
  std::string issue;        // only groups with this one
  std::string hash;         // show: of the group, or a beginning that only it has
};

// Each returns an exit code; 1: no such group; 4: broker or journal unreachable.
int groups_list(const GroupsOptions& options);
int groups_show(const GroupsOptions& options);

}  // namespace tocsin::app
