package login

import "net/http"

// words are the texts of the page in one language. Those from "wrong" on are for its script, which puts a number in
// the place of #.
var words = map[Language]map[string]string{
	English: {
		"title": "Sign in", "user": "User", "password": "Password", "show": "Show password", "submit": "Sign in",
		"noscript": "Signing in with a password requires JavaScript.", "with": "Sign in with", "or": "or",
		"wrong": "Wrong user or password.", "slow-minutes": "Too many failed attempts. Try again in # minutes.",
		"slow-seconds": "Too many failed attempts. Try again in # seconds.", "slow-second": "Too many failed attempts. Try again in a second.",
		"busy": "The service is busy. Try again in a moment.", "failed": "Sign-in failed (#).",
		"used":        "This link has been used, or its time is over. “troupe serve --demo” prints new ones.",
		"unreachable": "The service cannot be reached. Check your connection and try again.",
	},
	German: {
		"title": "Anmelden", "user": "Benutzer", "password": "Passwort", "show": "Passwort zeigen", "submit": "Anmelden",
		"noscript": "Die Anmeldung mit Passwort braucht JavaScript.", "with": "Anmelden mit", "or": "oder",
		"wrong": "Benutzer oder Passwort ist falsch.", "slow-minutes": "Zu viele Fehlversuche. Versuchen Sie es in # Minuten wieder.",
		"slow-seconds": "Zu viele Fehlversuche. Versuchen Sie es in # Sekunden wieder.", "slow-second": "Zu viele Fehlversuche. Versuchen Sie es in einer Sekunde wieder.",
		"busy": "Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.", "failed": "Die Anmeldung ist fehlgeschlagen (#).",
		"used":        "Dieser Link wurde schon benutzt, oder seine Zeit ist um. „troupe serve --demo“ zeigt neue.",
		"unreachable": "Der Dienst ist nicht erreichbar. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.",
	},
}

// problems say why a sign-in through the provider failed, by the status of its answer; 0 is for all others.
var problems = map[Language]map[int]string{
	English: {
		http.StatusBadRequest:         "This sign-in has expired or was started in another browser. Please try again.",
		http.StatusUnauthorized:       "The identity provider did not confirm your sign-in, or you do not have access to this service.",
		http.StatusForbidden:          "Please start signing in on this page.",
		http.StatusNotFound:           "This sign-in method is not available.",
		http.StatusTooManyRequests:    "Signing in is not possible now. Please try again in a moment.",
		http.StatusServiceUnavailable: "Signing in is not possible now. Please try again in a moment.",
		0:                             "Sign-in failed. Please try again.",
	},
	German: {
		http.StatusBadRequest:         "Diese Anmeldung ist abgelaufen oder wurde in einem anderen Browser begonnen. Bitte versuchen Sie es noch einmal.",
		http.StatusUnauthorized:       "Der Anmeldedienst hat Ihre Anmeldung nicht bestätigt, oder Sie haben keinen Zugang zu diesem Dienst.",
		http.StatusForbidden:          "Bitte beginnen Sie die Anmeldung auf dieser Seite.",
		http.StatusNotFound:           "Diese Art der Anmeldung gibt es hier nicht.",
		http.StatusTooManyRequests:    "Die Anmeldung ist gerade nicht möglich. Bitte versuchen Sie es gleich noch einmal.",
		http.StatusServiceUnavailable: "Die Anmeldung ist gerade nicht möglich. Bitte versuchen Sie es gleich noch einmal.",
		0:                             "Die Anmeldung ist fehlgeschlagen. Bitte versuchen Sie es noch einmal.",
	},
}

// problemOf returns what the page says of a sign-in that failed with a status; nothing for success.
func problemOf(l Language, status int) string {
	if status < http.StatusBadRequest {
		return ""
	}
	if text, ok := problems[l][status]; ok {
		return text
	}
	return problems[l][0]
}
