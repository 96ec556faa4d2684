// Package compat holds what must never change by accident. It has no code of
// its own, only tests that look at the rest of the repository: which packages
// may import which, what is documented, and how long a file may grow; names and
// payloads that running workflows refer to; recorded histories.
//
// A test here that fails after a change asks a question. The answer is rarely to
// change the test: a persisted name, for instance, belongs to workflows that
// started months ago.
package compat
