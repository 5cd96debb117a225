#include "app/process/person.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace tocsin::app {

std::string this_person() {
  std::string name;
  if (const passwd* entry = getpwuid(getuid()); entry != nullptr) name = entry->pw_name;
  if (name.empty()) name = "uid " + std::to_string(getuid());
  utsname host{};
  return uname(&host) == 0 ? name + "@" + host.nodename : name;
}

}  // namespace tocsin::app
