#include "actions/transport/address_guard.h"

#include <gtest/gtest.h>

namespace tocsin::actions {
namespace {

bool allowed(const AddressGuard& guard, const char* text) {
  return guard.allows(*parse_address(text));
}

TEST(AddressGuard, LetsPublicAddressesThrough) {
  const AddressGuard guard;
  for (const char* text : {"93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "172.32.0.1",
                           "100.128.0.1", "192.169.0.1", "[2001:4860:4860::8888]"}) {
    EXPECT_TRUE(allowed(guard, text)) << text;
  }
}

TEST(AddressGuard, KeepsPrivateAddressesOutHoweverTheyAreWritten) {
  const AddressGuard guard;
  for (const char* text : {"127.0.0.1",
                           "127.255.255.254",
                           "10.1.2.3",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.168.1.1",
                           "169.254.1.1",
                           "100.64.0.1",
                           "0.0.0.0",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "64:ff9b::7f00:1",
                           "2002:7f00:1::",
                           "::10.0.0.1"}) {
    EXPECT_FALSE(allowed(guard, text)) << text;
  }
}

TEST(AddressGuard, OpensOnlyTheNetworksThatAreNamed) {
  const auto guard = AddressGuard::create({"127.0.0.0/8", "fd00::/16", "192.168.7.9"});
  ASSERT_TRUE(guard);
  EXPECT_TRUE(allowed(*guard, "127.0.0.1"));
  EXPECT_TRUE(allowed(*guard, "::ffff:127.0.0.1"));
  EXPECT_TRUE(allowed(*guard, "fd00:1::1"));
  EXPECT_TRUE(allowed(*guard, "192.168.7.9"));
  EXPECT_FALSE(allowed(*guard, "192.168.7.10"));
  EXPECT_FALSE(allowed(*guard, "10.0.0.1"));
  EXPECT_FALSE(allowed(*guard, "::1"));
}

TEST(AddressGuard, NeverReachesAMetadataService) {
  const auto guard = AddressGuard::create({"0.0.0.0/0", "::/0"});
  ASSERT_TRUE(guard);
  EXPECT_FALSE(allowed(*guard, "169.254.169.254"));
  EXPECT_FALSE(allowed(*guard, "::ffff:169.254.169.254"));
  EXPECT_FALSE(allowed(*guard, "fd00:ec2::254"));
  EXPECT_TRUE(allowed(*guard, "169.254.1.1"));
}

TEST(AddressGuard, NamesTheEntryThatIsNoNetwork) {
  for (const char* wrong :
       {"", "example.com", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "::1/129", "/8"}) {
    const auto guard = AddressGuard::create({wrong});
    ASSERT_FALSE(guard) << wrong;
    EXPECT_NE(guard.error().message.find("\"" + std::string(wrong) + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace tocsin::actions
