// Package codec encrypts what Temporal's server keeps: arguments, results,
// memos, summaries, failures and the headers that carry contexts.
//
// [New] makes a [Codec] from keys; [ClientOptions] puts it into a client, whose
// workers encrypt as well; worker.PluginOptions.Codecs does the rest for headers.
// [NewHandler] serves it to Temporal's web interface and command line, which
// otherwise show encrypted bytes.
//
// Names stay readable whatever is done here: workflow ids and types, activity
// types with their module ids, task queues, search attributes and the types of
// errors. Put no secret into them.
//
// # Rotation
//
// Every payload names its key. Give all workers and clients a new key as the
// last of Options.Keys first, so that they can read it; then make it the first,
// so that they write with it; and drop the old one when no history that is still
// read or replayed was written with it.
package codec
