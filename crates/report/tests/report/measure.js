// What the browser measures of each page that it shows in a frame.
const seen = [...document.querySelectorAll('iframe')].map(frame => {
  const page = frame.contentDocument, overlaps = [];
  for (const svg of page.querySelectorAll('svg')) {
    const inside = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([text, a], at) => {
      if (a.left < inside.left - 2 || a.right > inside.right + 2 || a.bottom > inside.bottom + 2) overlaps.push(text + ' is cut off');
      for (const [other, b] of texts.slice(at + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 3) overlaps.push(text + ' / ' + other);
      }
    });
  }
  // Outside of what is folded, a table's first p99 is to be seen without scrolling.
  const p99 = [...page.querySelectorAll('main > .table')].flatMap(table => {
    const head = [...table.querySelectorAll('th')].find(head => head.textContent.startsWith('p99') && head.offsetWidth > 0);
    return head && head.getBoundingClientRect().right > frame.clientWidth ? [head.textContent + " ends at " + head.getBoundingClientRect().right] : [];
  });
  return { name: frame.name, p99_out_of_sight: p99, width: frame.clientWidth, overlaps, drawings: page.querySelectorAll('svg').length,
    too_wide: page.documentElement.scrollWidth - frame.clientWidth,
    background: getComputedStyle(page.body).backgroundColor };
});
document.body.textContent = JSON.stringify(seen);
