// Who listens on a port.
#include "app/process/port_holder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::app {
namespace {

TEST(PortHolder, NamesTheProcessThatListens) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(port_holder(port), "") << "bound, and not listening";
  ASSERT_EQ(listen(socket, 1), 0);
  EXPECT_TRUE(port_holder(port).starts_with("pid " + std::to_string(getpid()) + " ("));
  close(socket);
  EXPECT_EQ(port_holder(port), "");
  EXPECT_EQ(port_holder(port, "/nowhere"), "");
}

}  // namespace
}  // namespace tocsin::app
