#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace interlock::bench {

// How fast a server on this machine answers one request, over and over on 32 connections that stay
// open. Two threads ask, on the same processors as the server: what they use is part of the figure,
// so only ratios within one run mean anything. Failures end the program with a message.

// `request` is the whole text of it; `answer_bytes` the length of every answer, header included.
double AnswersPerSecond(std::uint16_t port, const std::string& request, std::size_t answer_bytes);

// The same, learning the length first.
double AnswersPerSecond(std::uint16_t port, const std::string& request);

// A whole request for `target`.
std::string GetRequest(const std::string& target);

// How long the whole answer to `request` is, header included.
std::size_t AnswerBytes(std::uint16_t port, const std::string& request);

// The same for as many bytes from memory, sent by a bare epoll loop in a process of its own: the
// most that this machine could do.
double MemoryAnswersPerSecond(const std::string& request, std::size_t answer_bytes);

// How long a server takes for all `requests`, whole texts, on so many connections that stay open,
// each asked again as soon as it has answered. One thread asks. Every answer must be 200.
double SecondsFor(std::uint16_t port, int connections, std::span<const std::string> requests);

// Measures both and reports the line. `target` is asked with GET.
void ReportRate(const std::string& name, std::uint16_t port, const std::string& target);

}  // namespace interlock::bench
