package main

import (
	"fmt"
	"math"
)

// Order is what a workflow begins with: about 800 bytes of JSON.
type Order struct {
	Number   string   `json:"number"`
	Customer Customer `json:"customer"`
	Items    []Item   `json:"items"`
	Card     string   `json:"card"`
}

// Customer is who has placed an order.
type Customer struct {
	Name   string `json:"name"`
	Email  string `json:"email"`
	Street string `json:"street"`
	City   string `json:"city"`
}

// Item is a line of an order.
type Item struct {
	SKU      string  `json:"sku"`
	Name     string  `json:"name"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

// Reservation is the result of the first step.
type Reservation struct {
	ID        string   `json:"id"`
	Warehouse string   `json:"warehouse"`
	Shelves   []string `json:"shelves"` // one for each line
}

// Receipt is the result of the second step.
type Receipt struct {
	ID          string  `json:"id"`
	Amount      float64 `json:"amount"`
	Reservation string  `json:"reservation"`
}

// Paid is what the second step is done with.
type Paid struct {
	Order       Order       `json:"order"`
	Reservation Reservation `json:"reservation"`
}

func newOrder(number string) Order {
	o := Order{
		Number:   number,
		Customer: Customer{"Ingrid Sommer", "ingrid.sommer@example.org", "Lange Straße 17, rear building", "26122 Oldenburg"},
		Card:     "tok_5f0c9b7e21d84a6f",
	}
	for i, name := range []string{"Desk, oak, 160 by 80", "Chair with armrests, gray", "Lamp, dimmable, warm white", "Drawer unit on casters", "Cable tray, 1.2 m", "Monitor arm, single"} {
		o.Items = append(o.Items, Item{fmt.Sprintf("SKU-%05d", 10_400+17*i), name, i + 1, 19.95 + 60*float64(i)})
	}
	return o
}

// reserve is the first step. What it would ask of a warehouse costs the same everywhere, so it asks nobody.
func reserve(o Order) Reservation {
	r := Reservation{ID: "res-" + o.Number, Warehouse: "north-2"}
	for _, item := range o.Items {
		r.Shelves = append(r.Shelves, item.SKU+"/A-12-3")
	}
	return r
}

// charge is the second step.
func charge(p Paid) Receipt {
	amount := 0.0
	for _, item := range p.Order.Items {
		amount += float64(item.Quantity) * item.Price
	}
	return Receipt{"rcp-" + p.Order.Number, math.Round(amount*100) / 100, p.Reservation.ID}
}

// checkReceipt makes sure that both steps were done for an order, with each other's data.
func checkReceipt(o Order, got Receipt) error {
	if want := charge(Paid{o, reserve(o)}); got != want {
		return fmt.Errorf("order %s: got %+v, want %+v", o.Number, got, want)
	}
	return nil
}
