// Package simulation has a world in memory in which instances run as the actors run them: with the engine of package statemachine and the
// decisions of packages message, task, child, invoke, outbox and pace, but with a clock that only Advance moves, and without a store, a
// network or goroutines. The same steps have the same result, ids included. Its test plays random walks here and against the real router.
//
//	w := simulation.New(simulation.Options{Definitions: …, User: …, Now: …})
//	in, err := w.Create("john.doe", "purchase-order", nil, nil)
//	err = w.Send("john.doe", in, "submit", data)
//	err = w.Advance(72 * time.Hour)               // timers come in order
//	err = w.Answer(in, "supplier", 200, body)     // what the webhook says to the delivery that waits for it
//
// Each of these ends when all that it causes at once has happened: what instances tell each other arrives, in the order in which it was
// sent. A mail leaves at once, and a delivery to a webhook waits for Answer. One that failed waits longer, as long as the real one waits
// at most. A refusal is an error of package failure, as the interface answers it, and changes nothing.
//
// A World is for one goroutine. There may be any number of them beside each other; they share definitions.
package simulation
