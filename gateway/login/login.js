"use strict";
const form = document.getElementById("form");
const user = document.getElementById("user");
const password = document.getElementById("password");
const submit = document.getElementById("submit");
const problem = document.getElementById("problem");

function reason(answer) {
	const seconds = Number(answer.headers.get("Retry-After")) || 1;
	switch (answer.status) {
	case 401:
		return "The user or the password is wrong.";
	case 429:
		return "There were too many failed attempts. Try again in " + (seconds > 90 ? Math.ceil(seconds / 60) + " minutes." : seconds > 1 ? seconds + " seconds." : "a second.");
	case 503:
		return "The service is busy. Try again in a moment.";
	}
	return "Signing in did not work (" + answer.status + ").";
}

// ask returns what keeps the person from going on, or nothing.
async function ask() {
	try {
		const answer = await fetch(form.dataset.session, {
			method: "POST",
			headers: { "Content-Type": "application/json" },
			body: JSON.stringify({ user: user.value, password: password.value }),
			credentials: "same-origin",
			redirect: "error",
		});
		if (answer.ok) {
			return "";
		}
		if (answer.status === 401) {
			password.value = "";
		}
		return reason(answer);
	} catch {
		return "The service cannot be reached.";
	}
}

form.addEventListener("submit", async (event) => {
	event.preventDefault();
	if (submit.disabled) {
		return;
	}
	submit.disabled = true;
	problem.textContent = "";
	password.removeAttribute("aria-invalid");
	const text = await ask();
	if (text === "") {
		location.replace(form.dataset.next);
		return;
	}
	problem.textContent = text;
	password.setAttribute("aria-invalid", "true");
	submit.disabled = false;
	password.focus();
});

submit.disabled = false;
