package demo

import (
	"time"

	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
)

const (
	leaves = "leave-request"
	orders = "purchase-order"
	counts = "stock-take"

	john  identity.UserID = "john.doe"
	mary  identity.UserID = "mary.major"
	paulo identity.UserID = "paulo.santos"

	olivia identity.UserID = "olivia.park" // who runs the service, and asks for nothing
)

func after(days float64, by identity.UserID, do act) step {
	return step{ago: ago(days), by: by, do: do}
}

func ago(days float64) time.Duration { return time.Duration(days * float64(24*time.Hour)) }

func leave(days float64, by identity.UserID, steps ...step) *wanted {
	return &wanted{workflow: leaves, kind: form.KindForm, template: "leave-form", by: by, ago: ago(days), steps: steps}
}

func order(days float64, by identity.UserID, says supplier, steps ...step) *wanted {
	return &wanted{workflow: orders, kind: form.KindForm, template: "order-form", by: by, ago: ago(days), supplier: says, steps: steps}
}

func count(days float64, steps ...step) *wanted {
	return &wanted{workflow: counts, by: paulo, ago: ago(days), steps: steps}
}

func plain(kind form.Kind, template string, days float64, by identity.UserID, steps ...step) *wanted {
	return &wanted{workflow: formportal.PlainWorkflow, kind: kind, template: template, by: by, ago: ago(days), steps: steps}
}

const (
	none     = `{}`
	laptop   = `{"items":[{"name":"Laptop","quantity":2,"price":1200}]}`
	chairs   = `{"items":[{"name":"Office chair","quantity":6,"price":249.5},{"name":"Floor mat","quantity":6,"price":39.9}],"note":"For the new room on the second floor."}`
	desks    = `{"items":[{"name":"Standing desk","quantity":7,"price":438.76}]}`
	screens  = `{"items":[{"name":"Screen","quantity":5,"price":310}]}`
	server   = `{"items":[{"name":"Server","quantity":2,"price":5800},{"name":"Rack","quantity":1,"price":400}]}`
	paper    = `{"items":[{"name":"Paper, box of 5 reams","quantity":4,"price":22.5}]}`
	headsets = `{"items":[{"name":"Headset","quantity":4,"price":85}]}`
	toner    = `{"items":[{"name":"Toner","quantity":2,"price":64.95}],"note":"The printer on the first floor is nearly empty."}`
	printer  = `{"items":[{"name":"Printer","quantity":1,"price":760}]}`
	tablet   = `{"items":[{"name":"Tablet","quantity":3,"price":629}]}`
	goodLuck = `{"comment":"Enjoy!"}`
)

// Whoever reads what comes of it finds every state of every workflow.
func story() []*wanted {
	return []*wanted{
		// Leave requests: two days are approved at once, longer ones wait for Mary and are overdue after four days.
		leave(45, john, after(45, john, submits(`{"days":2}`))),
		leave(25, john, after(25, john, submits(`{"days":5,"reason":"Skiing"}`)), after(24, mary, sends("approve", goodLuck))),
		leave(20, john, after(20, john, submits(`{"days":1}`))),
		leave(18, paulo, after(18, paulo, submits(`{"days":10}`)), after(16.5, mary, sends("approve", none))),
		leave(15, paulo, after(15, paulo, submits(`{"days":20}`)), after(14, mary, sends("reject", `{"comment":"Not during the stock-take, please."}`))),
		leave(12, john, after(12, john, submits(`{"days":2}`))),
		leave(11, john, after(11, john, submits(`{"days":3}`)), after(10, john, sends("withdraw", none))),
		leave(10, john, after(10, john, submits(`{"days":4,"reason":"Moving house"}`)), after(9.5, mary, says("Do you need a van?")), after(9.2, john, says("No, thanks, I have one.")), after(9, mary, sends("approve", none))),
		leave(9, john, after(9, john, submits(`{"days":12,"reason":"A long trip"}`))),
		leave(8, paulo, after(8, paulo, submits(`{"days":2}`))),
		leave(7, john, after(7, john, submits(`{"days":30}`)), after(6, mary, sends("reject", `{"comment":"Half of it would be fine."}`))),
		leave(6, paulo, after(6, paulo, submits(`{"days":8}`))),
		leave(5, mary, after(5, mary, submits(`{"days":1}`))),
		leave(4, paulo, after(3.9, paulo, sends("withdraw", none))),
		leave(3, paulo),
		leave(1.5, mary, after(1.5, mary, submits(`{"days":4}`))),
		leave(1, john, after(1, john, submits(`{"days":6,"reason":"Hiking"}`))),
		leave(0.5, paulo, after(0.5, paulo, submits(`{"days":10,"reason":"Family"}`)), after(0.3, mary, says("Who takes the orders meanwhile?"))),
		leave(0.1, john, after(0.1, john, submits(`{"days":3}`))),
		leave(0.05, john, after(0.05, john, drafts(`{"days":7,"reason":"Perhaps in spring"}`))),

		// Purchase orders: above 1,000 somebody is asked; then the supplier takes the order, refuses it or does not
		// answer.
		order(40, john, supplierAccepts, after(40, john, submits(paper)), after(39, paulo, comesTo("ordered")), after(38, paulo, sends("receive", none))),
		order(30, john, supplierAccepts, after(30, john, submits(laptop)), after(29, mary, sends("approve", none)), after(28, paulo, comesTo("ordered")), after(26, paulo, sends("receive", none))),
		order(21, paulo, supplierRefuses, after(21, paulo, submits(printer)), after(20.5, paulo, comesTo("byHand")), after(20, paulo, sends("order", none)), after(15, paulo, sends("receive", none))),
		order(17, paulo, supplierSilent, after(17, paulo, submits(tablet)), after(16, mary, sends("reject", `{"comment":"Two would do."}`))),
		order(14, john, supplierAccepts, after(14, john, submits(headsets)), after(13, paulo, comesTo("ordered")), after(11, paulo, sends("receive", none))),
		order(10, mary, supplierAccepts, after(10, mary, submits(toner)), after(9, paulo, comesTo("ordered")), after(8, paulo, sends("receive", none))),
		order(9, john, supplierSilent, after(9, john, submits(server)), after(8.5, mary, says("The budget for servers is used up until January.")), after(8, mary, sends("reject", `{"comment":"Please ask again in January."}`))),
		order(6, john, supplierRefuses, after(6, john, submits(headsets)), after(5.9, paulo, comesTo("byHand"))),
		order(5, john, supplierSilent, after(5, john, submits(chairs))),
		order(4, john, supplierAccepts, after(4, john, submits(paper)), after(3.9, paulo, comesTo("ordered"))),
		order(3, paulo, supplierRefuses, after(3, paulo, submits(screens)), after(2.5, mary, sends("approve", none)), after(2.4, paulo, comesTo("byHand"))),
		order(2.2, mary, supplierAccepts, after(2.2, mary, submits(printer)), after(2.1, paulo, comesTo("ordered"))),
		order(2, paulo, supplierSilent, after(2, paulo, submits(tablet))),
		order(1.8, mary, supplierSilent),
		order(1, john, supplierSilent, after(1, john, submits(laptop)), after(0.9, paulo, says("They are on offer until Friday."))),
		order(0.2, john, supplierSilent, after(0.2, john, submits(desks))),
		order(0.08, john, supplierSilent, after(0.08, john, drafts(`{"items":[{"name":"Desk lamp","quantity":2,"price":49}]}`))),
		order(0.02, john, supplierSilent, after(0.02, john, submits(toner))),

		// Stock-takes, which people begin without a form. After a week they are overdue.
		count(20, after(19, paulo, sends("count", `{"counted":1204,"missing":3}`))),
		count(9),
		count(1),

		plain(form.KindForm, "feedback", 13, mary, after(13, mary, submits(`{"topic":"Workplace","message":"The new chairs are good.","answer":false}`))),
		plain(form.KindForm, "feedback", 2.5, john, after(2.5, john, submits(`{"topic":"Tools","message":"The printer jams every day.","answer":true}`))),
		plain(form.KindChecklist, "workplace-safety", 28, john, after(28, john, submits(`{"exits":true,"extinguishers":true,"first-aid":true,"cables":true,"lighting":false}`))),
		plain(form.KindChecklist, "workplace-safety", 0.3, john, after(0.3, john, drafts(`{"exits":true}`))),
	}
}
