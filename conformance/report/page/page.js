"use strict";
(function () {
	const input = document.getElementById("find");
	const count = document.getElementById("count");
	const cases = Array.from(document.querySelectorAll("details.case"));
	const texts = cases.map(c => c.querySelector("summary").textContent.toLowerCase());

	// show leaves the cases that have every word of the filter in their line.
	function show() {
		const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
		let n = 0;
		cases.forEach((c, i) => {
			const hit = words.every(w => texts[i].includes(w));
			c.hidden = !hit;
			if (hit) n++;
		});
		count.textContent = n + " of " + cases.length;
	}

	function filter(word) {
		input.value = word;
		show();
		input.scrollIntoView({block: "start"});
	}

	// follow opens the case that the address names.
	function follow() {
		const c = document.getElementById(decodeURIComponent(location.hash.slice(1)));
		if (!c || !c.matches("details.case")) return;
		c.hidden = false;
		c.open = true;
		c.scrollIntoView();
	}

	input.addEventListener("input", show);
	document.querySelectorAll("button[data-find]").forEach(b => b.addEventListener("click", () => filter(b.dataset.find)));
	window.addEventListener("hashchange", follow);
	show();
	follow();
})();
