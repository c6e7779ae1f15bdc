// Package leave is what the programs restate, dbos and temporal share: the workflow of
// bench/load (a leave request that goes from draft to review and back), the part of the
// workflow interface that its load asks for, and the peer's server as a child process.
//
// Each program keeps the state of an instance and one entry for each event in the peer, and
// answers when the peer says that both are applied and durable. Rights are not checked, and
// replies carry no history: a caller must ask for minimal ones.
package leave
