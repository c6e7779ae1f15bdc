"use strict";
const form = document.getElementById("form");
const user = document.getElementById("user");
const password = document.getElementById("password");
const show = document.getElementById("show");
const submit = document.getElementById("submit");
const problem = document.getElementById("problem");
const words = form.dataset;

function messageFor(answer) {
	const seconds = Number(answer.headers.get("Retry-After")) || 1;
	switch (answer.status) {
	case 401:
		return words.wrong;
	case 429:
		return seconds > 90 ? words.slowMinutes.replace("#", Math.ceil(seconds / 60)) : seconds > 1 ? words.slowSeconds.replace("#", seconds) : words.slowSecond;
	case 503:
		return words.busy;
	}
	return words.failed.replace("#", answer.status);
}

// signIn returns why the sign-in with a user and a password, or with a link, failed, or "".
async function signIn(proof) {
	try {
		const answer = await fetch(form.dataset.session, {
			method: "POST",
			headers: { "Content-Type": "application/json" },
			body: JSON.stringify(proof),
			credentials: "same-origin",
			redirect: "error",
		});
		if (answer.ok) {
			return "";
		}
		if (answer.status === 401) {
			password.value = "";
		}
		return answer.status === 401 && proof.link ? words.used : messageFor(answer);
	} catch {
		return words.unreachable;
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
	const text = await signIn({ user: user.value, password: password.value });
	if (text === "") {
		location.replace(form.dataset.next);
		return;
	}
	problem.textContent = text;
	password.setAttribute("aria-invalid", "true");
	submit.disabled = false;
	password.focus();
});

show.addEventListener("change", () => {
	password.type = show.checked ? "text" : "password";
});

// Light or dark as the person chose on the pages (gateway/console/web/src/frame/looks.ts).
try {
	const looks = localStorage.getItem("troupe.looks");
	if (looks === "light" || looks === "dark") {
		document.documentElement.style.colorScheme = looks;
	}
} catch {
	// A browser may refuse its store.
}

// The link that the server prints for its example is spent here. It leaves the address bar and the history first.
const link = /^#link=(.+)$/.exec(location.hash);
if (link) {
	history.replaceState(null, "", location.pathname + location.search);
	signIn({ link: link[1] }).then((text) => {
		if (text === "") {
			location.replace(form.dataset.next);
			return;
		}
		problem.textContent = text;
		submit.disabled = false;
	});
} else {
	// Who is signed in already, in another tab for example, goes on.
	fetch(form.dataset.session, { credentials: "same-origin", cache: "no-store" }).then((answer) => {
		if (answer.ok && user.value === "" && password.value === "") {
			location.replace(form.dataset.next);
		}
	}, () => {});
	submit.disabled = false;
}
