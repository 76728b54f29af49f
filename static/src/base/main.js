// Every page loads this: the theme toggle and relative times.
import { startPage } from "../lib/page.js";

// Tells the server that this browser fetches texts itself: pages then come without the text for browsers that do not.
document.cookie = "scripted=1; path=/; max-age=31536000; samesite=strict";

startPage();
