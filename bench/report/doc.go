// Package report is what a measurement of `troupe bench` leaves: figures as JSON, and a
// page of HTML that needs nothing else.
package report
