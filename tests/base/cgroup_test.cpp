#include "convssm/base/cgroup.h"

#include <gtest/gtest.h>

#include <string>

#include "scratch_folder.h"

namespace convssm {
namespace {

struct FakeCgroup {
  explicit FakeCgroup(const std::string& membership) { folder.write("cgroup", membership); }
  CgroupFiles files() const { return {folder.path("cgroup"), folder.path("mount")}; }
  void write(const std::string& name, const std::string& text) const { folder.write("mount/" + name, text + "\n"); }
  ScratchFolder folder;
};

TEST(Cgroup, VersionTwoQuotaTightestOfTheParents) {
  const FakeCgroup fake("0::/outer/inner\n");
  fake.write("outer/inner/cpu.max", "max 100000");
  EXPECT_FALSE(cgroup_cpus(fake.files()));
  fake.write("outer/cpu.max", "150000 100000");
  EXPECT_DOUBLE_EQ(cgroup_cpus(fake.files()).value(), 1.5);
  fake.write("outer/inner/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(cgroup_cpus(fake.files()).value(), 1.5);
}

TEST(Cgroup, VersionOneQuota) {
  const FakeCgroup fake("3:cpu,cpuacct:/box\n2:memory:/box\n");
  fake.write("cpu/box/cpu.cfs_period_us", "100000");
  fake.write("cpu/box/cpu.cfs_quota_us", "-1");
  EXPECT_FALSE(cgroup_cpus(fake.files()));
  fake.write("cpu/box/cpu.cfs_quota_us", "250000");
  EXPECT_DOUBLE_EQ(cgroup_cpus(fake.files()).value(), 2.5);
}

TEST(Cgroup, VersionTwoMemoryCountsDroppableCacheAsFree) {
  const FakeCgroup fake("0::/box\n");
  fake.write("box/memory.max", "max");
  EXPECT_FALSE(cgroup_memory(fake.files()));
  fake.write("box/memory.max", "1000");
  fake.write("box/memory.current", "700");
  fake.write("box/memory.stat", "anon 400\ninactive_file 200\nactive_file 100");
  EXPECT_EQ(cgroup_memory(fake.files())->limit, 1000u);
  EXPECT_EQ(cgroup_memory(fake.files())->room, 500u);
}

TEST(Cgroup, VersionOneMemoryInsideAContainer) {
  // The path is the one outside; inside, the group itself is what is mounted.
  const FakeCgroup fake("4:memory:/docker/0123\n");
  fake.write("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(cgroup_memory(fake.files()));
  fake.write("memory/memory.limit_in_bytes", "1000");
  fake.write("memory/memory.usage_in_bytes", "1200");
  EXPECT_EQ(cgroup_memory(fake.files())->limit, 1000u);
  EXPECT_EQ(cgroup_memory(fake.files())->room, 0u);
}

TEST(Cgroup, LimitAndRoomMayComeFromDifferentGroups) {
  const FakeCgroup fake("0::/outer/inner\n");
  fake.write("outer/memory.max", "10000");
  fake.write("outer/memory.current", "9500");
  fake.write("outer/inner/memory.max", "2000");
  fake.write("outer/inner/memory.current", "100");
  EXPECT_EQ(cgroup_memory(fake.files())->limit, 2000u);
  EXPECT_EQ(cgroup_memory(fake.files())->room, 500u);
}

TEST(Cgroup, MissingOrStrangeFilesMeanNoLimit) {
  EXPECT_FALSE(cgroup_cpus({"/nonexistent", "/nonexistent"}));
  EXPECT_FALSE(cgroup_memory({"/nonexistent", "/nonexistent"}));
  const FakeCgroup fake("nonsense\n::\n0::relative/../path\n");
  fake.write("cpu.max", "abc");
  fake.write("memory.max", "");
  EXPECT_FALSE(cgroup_cpus(fake.files()));
  EXPECT_FALSE(cgroup_memory(fake.files()));
}

}  // namespace
}  // namespace convssm
