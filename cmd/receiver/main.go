// Receiver is the other side of webhooks and mails on one machine, to try workflows with:
//
//	go run ./cmd/receiver
//
// It shows what comes and takes everything. A webhook is answered with a number of an order. With --answer it is answered with
// that status, as a service that is in trouble would.
package main

import (
	"os"

	"troupe/bench/process"
	"troupe/cmd/internal/receiver"
)

func main() { os.Exit(process.Main("receiver", receiver.Run)) }
