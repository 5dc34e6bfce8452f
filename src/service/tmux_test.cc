#include "service/tmux.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"
#include "testing/random.h"
#include "testing/tmux_server.h"

namespace interlock::service {
namespace {

using domain::TmuxTarget;
using ::testing::HasSubstr;

std::future<Result<void>> Begin(TmuxInjector& injector, Injector::Order order) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  injector.Inject(std::move(order),
                  [promise](Result<void> put) { promise->set_value(std::move(put)); });
  return future;
}

// The bytes that a program reads for a text: Enter is typed for each newline, and once more.
std::string AsTyped(std::string text) {
  std::ranges::replace(text, '\n', '\r');
  return text + "\r";
}

class TmuxTest : public ::testing::Test {
 protected:
  TmuxTest() { ::signal(SIGPIPE, SIG_IGN); }

  Result<void> Put(TmuxTarget target, std::string text) {
    return Begin(injector_,
                 {.recipient = "a", .target = std::move(target), .text = std::move(text)})
        .get();
  }

  testing::TmuxServer tmux_;
  SystemClock clock_;
  TmuxInjector injector_{clock_};
};

TEST_F(TmuxTest, TypesTheTextAndPressesEnter) {
  tmux_.Open("work", "a");
  tmux_.Open("work", "b");
  const std::string text = "first\nsecond\ttab\n";
  const auto put = Put({.session = "work", .window = "b", .pane = "0"}, text);
  ASSERT_TRUE(put.ok()) << put.error();
  EXPECT_EQ(tmux_.TypedUpTo("work", "b", AsTyped(text)), AsTyped(text));
  EXPECT_EQ(tmux_.Typed("work", "a"), "");
  EXPECT_EQ(tmux_.Tmux({"list-buffers"}), "") << "nothing stays in tmux";
}

TEST_F(TmuxTest, NamesMayHoldBlanksAndDotsAndNumbersMeanWindows) {
  tmux_.Open("my work", "the editor");
  tmux_.Open("my work", "2.0.14");
  EXPECT_TRUE(Put({.session = "my work", .window = "the editor"}, "1").ok());
  EXPECT_EQ(tmux_.TypedUpTo("my work", "the editor", "1\r"), "1\r");
  EXPECT_TRUE(Put({.session = "my work", .window = "2.0.14", .pane = "0"}, "2").ok());
  EXPECT_TRUE(Put({.session = "my work", .window = "1"}, "3").ok());
  EXPECT_EQ(tmux_.TypedUpTo("my work", "2.0.14", "3\r"), "2\r3\r");
  EXPECT_TRUE(Put({.session = "my work"}, "4").ok()) << "the active window and pane";
  EXPECT_EQ(tmux_.TypedUpTo("my work", "the editor", "4\r"), "1\r4\r");
}

// Nothing is an argument that tmux would understand, and nothing is a command to a shell.
TEST_F(TmuxTest, AHostileTextIsTypedAsItIs) {
  tmux_.Open("work", "a");
  std::string text = "; kill-server\n$(touch x) `id` \\; 'q' \"q\" #{pane_id} %1 -t \\\n";
  while (text.size() < std::size_t{64} * 1024) text += "0123456789 ;$()'\"\\ äöü€\n";
  const auto put = Put({.session = "work", .window = "a"}, text);
  ASSERT_TRUE(put.ok()) << put.error();
  const std::string typed = tmux_.TypedUpTo("work", "a", "€\r\r");
  EXPECT_EQ(typed.size(), AsTyped(text).size());
  EXPECT_TRUE(typed == AsTyped(text));
}

TEST_F(TmuxTest, AProgramThatKnowsPastesGetsOne) {
  tmux_.Open("work", "a", testing::TmuxServer::Program::kKnowsPastes);
  ASSERT_TRUE(Put({.session = "work", .window = "a"}, "1\n2\n").ok());
  EXPECT_EQ(tmux_.TypedUpTo("work", "a", "~\r"), "\x1b[200~1\r2\r\x1b[201~\r");
}

TEST_F(TmuxTest, WhatIsGoneIsNeverMistakenForAnother) {
  tmux_.Open("work2", "abc");
  tmux_.Open("work2", "twin");
  tmux_.Tmux({"new-window", "-d", "-t", "=work2:", "-n", "twin", "cat"});
  EXPECT_THAT(Put({.session = "work"}, "x").error().message(), HasSubstr("can't find session"));
  EXPECT_THAT(Put({.session = "work2", .window = "ab"}, "x").error().message(), HasSubstr("gone"));
  EXPECT_THAT(Put({.session = "work2", .window = "7"}, "x").error().message(), HasSubstr("gone"));
  EXPECT_THAT(Put({.session = "work2", .window = "abc", .pane = "1"}, "x").error().message(),
              HasSubstr("gone"));
  EXPECT_THAT(Put({.session = "work2", .window = "twin"}, "x").error().message(),
              HasSubstr("several"));
  EXPECT_EQ(tmux_.Typed("work2", "abc") + tmux_.Typed("work2", "twin"), "");
}

TEST_F(TmuxTest, APaneInWhichSomebodyScrollsIsLeftAlone) {
  tmux_.Open("work", "a");
  tmux_.Tmux({"copy-mode", "-t", "=work:a"});
  EXPECT_THAT(Put({.session = "work", .window = "a"}, "x").error().message(), HasSubstr("scrolls"));
  tmux_.Tmux({"send-keys", "-t", "=work:a", "-X", "cancel"});
  EXPECT_TRUE(Put({.session = "work", .window = "a"}, "y").ok());
  EXPECT_EQ(tmux_.TypedUpTo("work", "a", "y\r"), "y\r");
}

TEST_F(TmuxTest, APaneThatIsMarkedTakesTextsForItsOwnAgentOnly) {
  tmux_.Open("work", "a");
  tmux_.Open("work", "b");
  tmux_.Tmux({"set-option", "-p", "-t", "=work:a", "@intermute_agent", "b"});
  tmux_.Tmux({"set-option", "-p", "-t", "=work:b", "@intermute_agent", "a"});
  EXPECT_THAT(Put({.session = "work", .window = "a"}, "x").error().message(),
              HasSubstr("another agent's"));
  EXPECT_TRUE(Put({.session = "work", .window = "b"}, "y").ok());
  EXPECT_EQ(tmux_.TypedUpTo("work", "b", "y\r"), "y\r");
  EXPECT_EQ(tmux_.Typed("work", "a"), "");
}

TEST_F(TmuxTest, AShellIsNeverGivenAText) {
  tmux_.Open("work", "a");
  tmux_.Tmux({"new-window", "-d", "-t", "=work:", "-n", "prompt", "exec sh -i"});
  EXPECT_THAT(Put({.session = "work", .window = "prompt"}, "touch here").error().message(),
              HasSubstr("a shell is in the pane"));
}

TEST_F(TmuxTest, WithoutAServerAnOrderFailsAndStartsNone) {
  const auto put = Put({.session = "work"}, "x");
  ASSERT_FALSE(put.ok());
  EXPECT_THAT(put.error().message(), HasSubstr("tmux list-panes: "));
  EXPECT_FALSE(Put({.session = "work"}, "x").ok());
}

TEST_F(TmuxTest, WithoutTmuxAnOrderFails) {
  TmuxInjector none(clock_, {.program = "no-such-tmux"});
  const auto put = Begin(none, {.recipient = "a", .target = {.session = "s"}, .text = "x"}).get();
  EXPECT_EQ(put.error().code(), Errc::kNotFound);
}

// Each text is whole, and followed by its own Enter.
TEST_F(TmuxTest, TextsForOneRecipientNeverMix) {
  tmux_.Open("work", "a");
  const int senders = testing::kSlowBuild ? 4 : 8;
  constexpr int kEach = 4;
  std::vector<std::thread> threads;
  threads.reserve(senders);
  for (int i = 0; i < senders; ++i) {
    threads.emplace_back([this, i] {
      for (int j = 0; j < kEach; ++j) {
        const std::string text = std::string(2000, static_cast<char>('A' + i)) + "\n";
        EXPECT_TRUE(Put({.session = "work", .window = "a"}, text).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::size_t whole = static_cast<std::size_t>(senders) * kEach * 2002;
  std::string typed;
  do {
    typed = tmux_.TypedUpTo("work", "a", "\r\r");
  } while (typed.size() < whole);
  ASSERT_EQ(typed.size(), whole);
  for (std::size_t at = 0; at < whole; at += 2002) {
    EXPECT_EQ(typed.substr(at, 2002), std::string(2000, typed[at]) + "\r\r");
  }
}

// The real one, but what presses Enter fails after all that came before it.
TEST_F(TmuxTest, ATextWithoutItsEnterIsTakenBackAndNotDelivered) {
  const testing::TempDir directory;
  const std::filesystem::path program = directory.path() / "tmux";
  std::ofstream(program) << "#!/bin/bash\n"
                            "if [[ ${*: -1} != Enter ]]; then exec tmux \"$@\"; fi\n"
                            "set -- \"${@:1:$#-4}\"\n"  // send-keys -t %1 Enter
                            "if [[ $# -gt 0 ]]; then tmux \"${@:1:$#-1}\" || exit; fi\n"
                            "echo 'no Enter today' >&2; exit 1\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  TmuxInjector injector(clock_, {.program = program});
  tmux_.Open("work", "a");
  const Injector::Order order = {
      .recipient = "a", .target = {.session = "work", .window = "a"}, .text = "1\n2"};
  const auto put = Begin(injector, order).get();
  ASSERT_FALSE(put.ok());
  EXPECT_THAT(put.error().message(), HasSubstr("no Enter today"));
  ASSERT_TRUE(Put(order.target, "next").ok());
  EXPECT_EQ(tmux_.TypedUpTo("work", "a", "next\r"), "1\r2\x15\x15\x15\x15next\r");
  EXPECT_EQ(tmux_.Tmux({"list-buffers"}), "");
}

// What was never pasted is not taken back: what stands in the prompt is somebody's own.
TEST_F(TmuxTest, WhereNothingWasPastedNothingIsTakenBack) {
  const testing::TempDir directory;
  const std::filesystem::path program = directory.path() / "tmux";
  std::ofstream(program) << "#!/bin/sh\n[ \"$1\" = paste-buffer ] && exit 1\nexec tmux \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  TmuxInjector injector(clock_, {.program = program});
  tmux_.Open("work", "a");
  const Injector::Order order = {
      .recipient = "a", .target = {.session = "work", .window = "a"}, .text = "x"};
  EXPECT_FALSE(Begin(injector, order).get().ok());
  ASSERT_TRUE(Put(order.target, "next").ok());
  EXPECT_EQ(tmux_.TypedUpTo("work", "a", "next\r"), "next\r");
  EXPECT_EQ(tmux_.Tmux({"list-buffers"}), "");
}

// A tmux that never answers, on a clock of the test's own.
class SlowTmuxTest : public ::testing::Test {
 protected:
  SlowTmuxTest() {
    ::signal(SIGPIPE, SIG_IGN);
    std::ofstream(program_) << "#!/bin/sh\nexec sleep 1000\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }
  std::future<Result<void>> Order(TmuxInjector& injector) {
    return Begin(injector, {.recipient = "a", .target = {.session = "s"}, .text = "x"});
  }
  void AwaitCall() {
    while (clock_.timers_waiting() == 0) std::this_thread::yield();
  }

  testing::TempDir directory_;
  const std::filesystem::path program_ = directory_.path() / "tmux";
  testing::FakeClock clock_;
};

TEST_F(SlowTmuxTest, ACallHasTwoSecondsAndAnOrderFiveToBegin) {
  TmuxInjector injector(clock_, {.program = program_});
  std::vector<std::future<Result<void>>> orders;
  orders.reserve(5);
  for (int i = 0; i < 5; ++i) orders.push_back(Order(injector));
  for (int i = 0; i < 3; ++i) {
    AwaitCall();
    clock_.Advance(std::chrono::seconds(2));
    EXPECT_THAT(orders[static_cast<std::size_t>(i)].get().error().message(),
                HasSubstr("tmux list-panes: it did not end within 2s"));
  }
  // Six seconds have passed.
  EXPECT_THAT(orders[3].get().error().message(), HasSubstr("too slow"));
  EXPECT_THAT(orders[4].get().error().message(), HasSubstr("too slow"));
}

TEST_F(SlowTmuxTest, WhatIsTooMuchIsRefusedAtOnce) {
  TmuxInjector injector(clock_, {.workers = 1, .queue_max = 2, .program = program_});
  auto first = Order(injector);
  AwaitCall();
  auto second = Order(injector);
  auto third = Order(injector);
  EXPECT_THAT(Order(injector).get().error().message(), HasSubstr("too many"));
  injector.Stop();
  for (auto* order : {&first, &second, &third}) EXPECT_FALSE(order->get().ok());
}

TEST_F(SlowTmuxTest, StopEndsEverythingAtOnce) {
  TmuxInjector injector(clock_, {.program = program_});
  auto running = Order(injector);
  auto waiting = Order(injector);
  AwaitCall();
  injector.Stop();
  injector.Stop();
  EXPECT_FALSE(running.get().ok());
  EXPECT_FALSE(waiting.get().ok());
  EXPECT_THAT(Order(injector).get().error().message(), HasSubstr("stops"));
}

}  // namespace
}  // namespace interlock::service
