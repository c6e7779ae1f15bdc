"use strict";
const form = document.getElementById("form");
const user = document.getElementById("user");
const password = document.getElementById("password");
const submit = document.getElementById("submit");
const problem = document.getElementById("problem");

function messageFor(answer) {
	const seconds = Number(answer.headers.get("Retry-After")) || 1;
	switch (answer.status) {
	case 401:
		return "Wrong user or password.";
	case 429:
		return "Too many failed attempts. Try again in " + (seconds > 90 ? Math.ceil(seconds / 60) + " minutes." : seconds > 1 ? seconds + " seconds." : "a second.");
	case 503:
		return "The service is busy. Try again in a moment.";
	}
	return "Sign-in failed (" + answer.status + ").";
}

// signIn returns why the sign-in failed, or "".
async function signIn() {
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
		return messageFor(answer);
	} catch {
		return "The service cannot be reached. Check your connection and try again.";
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
	const text = await signIn();
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
